import type {
  AcquireRequest,
  ExtendRequest,
  MasterRequest,
  PickRequest,
  QueueTicket,
  Sharing,
} from '../../core/master.interface.js';
import type { ClusterNames } from './cluster-names.js';

/** A request to one partition, with names as they are stored. */
export interface PartitionRequest {
  readonly partition: number;
  readonly request: MasterRequest;
}

/** Divides a request by the partitions of its keys, in ascending order of the partitions. */
export function split(
  request: MasterRequest,
  names: ClusterNames,
  waiterAt: (partition: number, waiter: string) => string,
): PartitionRequest[] {
  const { keys } = request;
  const [only] = keys;
  if (only !== undefined && keys.length === 1) {
    const partition = names.partitionOf(only);
    return [{ partition, request: inPartition(request, [0], partition, names, waiterAt) }];
  }
  const indexes = new Map<number, number[]>();
  keys.forEach((key, index) => {
    const partition = names.partitionOf(key);
    const known = indexes.get(partition);
    if (known) known.push(index);
    else indexes.set(partition, [index]);
  });
  return [...indexes]
    .sort(([one], [other]) => one - other)
    .map(([partition, chosen]) => ({ partition, request: inPartition(request, chosen, partition, names, waiterAt) }));
}

/** The part of a request that concerns the keys with these indexes. */
function inPartition(
  request: MasterRequest,
  indexes: readonly number[],
  partition: number,
  names: ClusterNames,
  waiterAt: (partition: number, waiter: string) => string,
): MasterRequest {
  const stored = (list: readonly string[]): string[] =>
    indexes.map((index) => names.inPartition(partition, list[index] ?? ''));
  const ticket = (queue: QueueTicket | undefined): QueueTicket | undefined =>
    queue && { ...queue, queues: stored(queue.queues), waiter: waiterAt(partition, queue.waiter) };
  const keys = stored(request.keys);
  switch (request.op) {
    case 'acquire': {
      const { sharing } = request;
      return new AcquirePart(
        request,
        keys,
        ticket(request.queue),
        sharing && { ...sharing, barriers: stored(sharing.barriers) },
      );
    }
    case 'pick':
      return new PickPart(request, keys, ticket(request.queue));
    case 'extend':
      return new ExtendPart(request, keys);
    case 'want':
      return { ...request, keys, barriers: stored(request.barriers), waiter: waiterAt(partition, request.waiter) };
    case 'draw':
      return { ...request, keys, counters: indexes.map((index) => request.counters[index] ?? 0) };
    case 'release':
      return { ...request, keys, queues: stored(request.queues) };
    case 'leave':
      return { ...request, keys, queues: stored(request.queues), waiter: waiterAt(partition, request.waiter) };
    case 'inspect':
      return { ...request, keys, ...(request.queues && { queues: stored(request.queues) }) };
    case 'probe':
      return { ...request, keys };
    case 'open-state':
    case 'write-state':
    case 'read-state':
      return { ...request, keys, entry: names.inPartition(partition, request.entry) };
  }
}

type Withdrawable = AcquireRequest | PickRequest | ExtendRequest;

/** A part of a request that is withdrawn with the whole. A class, because nearly each request of a cluster makes one. */
abstract class WithdrawablePart<Whole extends Withdrawable> {
  readonly #whole: Whole;
  readonly token: string;
  readonly ttl: number;

  constructor(
    whole: Whole,
    readonly keys: readonly string[],
  ) {
    this.#whole = whole;
    this.token = whole.token;
    this.ttl = whole.ttl;
  }

  get withdrawn(): boolean {
    return this.#whole.withdrawn;
  }
}

class AcquirePart extends WithdrawablePart<AcquireRequest> implements AcquireRequest {
  readonly op = 'acquire';

  constructor(
    whole: AcquireRequest,
    keys: readonly string[],
    readonly queue: QueueTicket | undefined,
    readonly sharing: Sharing | undefined,
  ) {
    super(whole, keys);
  }
}

class PickPart extends WithdrawablePart<PickRequest> implements PickRequest {
  readonly op = 'pick';

  constructor(
    whole: PickRequest,
    keys: readonly string[],
    readonly queue: QueueTicket | undefined,
  ) {
    super(whole, keys);
  }
}

class ExtendPart extends WithdrawablePart<ExtendRequest> implements ExtendRequest {
  readonly op = 'extend';
  readonly isShared: boolean | undefined;

  constructor(whole: ExtendRequest, keys: readonly string[]) {
    super(whole, keys);
    this.isShared = whole.isShared;
  }
}
