import type { Instant } from '../redlock/clock.js';
import type { Primitive } from '../redlock/primitive.js';
import type {
  AcquireRequest,
  ExtendRequest,
  PickRequest,
  QueueTicket,
  ReleaseRequest,
} from '../masters/master.interface.js';
import type { KeyNames, Keyspace } from '../settings/keyspace.js';

// A kind of lock: which keys it has, and how it asks for them.
export interface Kind extends Primitive {
  // Derived when they are needed: most of the time, a lock is only held.
  readonly names: KeyNames;
  readonly isShared: boolean;
  // Counted from 0; `undefined` unless it is a permit.
  readonly slot: number | undefined;
  // As to the other masters, and joins a queue if it is refused.
  acquireOrQueue(token: string, ttl: number, since: Instant, ticket: QueueTicket | undefined): AcquireRequest;
}

// The keys of some resources, for one holder or for several.
abstract class NamedKeys implements Kind {
  abstract readonly names: KeyNames;
  abstract readonly isShared: boolean;
  abstract readonly slot: number | undefined;

  acquire(token: string, ttl: number, since: Instant): AcquireRequest {
    return this.acquireOrQueue(token, ttl, since, undefined);
  }

  acquireOrQueue(token: string, ttl: number, { monotonic }: Instant, queue: QueueTicket | undefined): AcquireRequest {
    const { keys } = this.names;
    return { op: 'acquire', keys, token, ttl, since: monotonic, withdrawn: false, queue, sharing: undefined };
  }

  extend(token: string, ttl: number, { monotonic }: Instant, heals: boolean): ExtendRequest {
    const { isShared, names } = this;
    return { op: 'extend', keys: names.keys, token, ttl, since: monotonic, withdrawn: false, isShared, heals };
  }

  release(token: string, keepFor: number, life: number): ReleaseRequest {
    const { isShared, names } = this;
    const { keys, queues } = names;
    return { op: 'release', keys, queues, token, keepFor, ttl: life, isShared };
  }
}

export class ExclusiveKeys extends NamedKeys {
  constructor(
    private readonly keyspace: Keyspace,
    private readonly resources: readonly string[],
  ) {
    super();
  }

  get names(): KeyNames {
    return this.keyspace.namesOf(this.resources);
  }

  get isShared(): boolean {
    return false;
  }

  get slot(): undefined {
    return undefined;
  }
}

export class SharedKeys extends ExclusiveKeys {
  constructor(
    keyspace: Keyspace,
    resources: readonly string[],
    // When the call began: an older one is not deferred.
    private readonly began: Instant,
  ) {
    super(keyspace, resources);
  }

  override get isShared(): boolean {
    return true;
  }

  override acquireOrQueue(token: string, ttl: number, since: Instant, queue: QueueTicket | undefined): AcquireRequest {
    const waited = Math.floor(since.monotonic - this.began.monotonic);
    const { keys, writerKeys } = this.names;
    const { monotonic } = since;
    const sharing = { writerKeys, waited };
    return { op: 'acquire', keys, token, ttl, since: monotonic, withdrawn: false, queue, sharing };
  }
}

// One of the permits of a resource or, as long as none is chosen, all of them.
export class PermitKey extends NamedKeys {
  constructor(private current: KeyNames) {
    super();
  }

  get names(): KeyNames {
    return this.current;
  }

  get isShared(): boolean {
    return false;
  }

  get slot(): number | undefined {
    return this.current.slot;
  }

  // One of these keys.
  // Protocol 11.10
  pick(
    keys: readonly string[],
    token: string,
    ttl: number,
    since: Instant,
    queue: QueueTicket | undefined,
  ): PickRequest {
    return { op: 'pick', keys, token, ttl, since: since.monotonic, withdrawn: false, queue };
  }

  // Until one is taken, the key to release is not known.
  choose(namesOf: (key: string) => KeyNames, key: string | undefined): void {
    if (key !== undefined) this.current = namesOf(key);
  }
}
