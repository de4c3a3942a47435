import {
  type AcquireRequest,
  type ExtendRequest,
  GRANTED,
  type MasterReply,
  type MasterRequest,
  NOT_ASKED,
  type PickRequest,
  type QueueTicket,
  type ReplyCallback,
  type Sharing,
} from '../../core/master.interface.js';
import type { ClusterNames } from './cluster-names.js';
import { BARRIER } from '../../core/keyspace.js';
import type { ServerRequest } from '../request-encoding.js';
import type { PendingRequest } from '../request-queue.js';

export interface PartitionRequest {
  readonly partition: number;
  readonly request: MasterRequest;
}

// In ascending order of the partitions.
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
      const { queue, sharing } = request;
      const shared = sharing && { ...sharing, barriers: stored(sharing.barriers) };
      return new WithdrawablePart(request, keys, ticket(queue), shared);
    }
    case 'pick':
      return new WithdrawablePart(request, keys, ticket(request.queue));
    case 'extend':
      return new WithdrawablePart(request, keys);
    case 'raise-barrier':
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

// Withdrawn with the whole. A class, because nearly each request of a cluster makes one.
class WithdrawablePart<Whole extends AcquireRequest | PickRequest | ExtendRequest> {
  readonly #whole: Whole;
  readonly op: Whole['op'];
  readonly token: string;
  readonly ttl: number;
  readonly isShared: boolean | undefined;

  constructor(
    whole: Whole,
    readonly keys: readonly string[],
    readonly queue?: QueueTicket,
    readonly sharing?: Sharing,
  ) {
    this.#whole = whole;
    this.op = whole.op;
    this.token = whole.token;
    this.ttl = whole.ttl;
    this.isShared = 'isShared' in whole ? whole.isShared : undefined;
  }

  get withdrawn(): boolean {
    return this.#whole.withdrawn;
  }
}

export interface PartitionedRequest extends PendingRequest {
  readonly partition: number;
}

// A cluster checks that all names are in one slot, and services may refuse those that are not declared.
// Protocol 12.3
export function keysOf(requests: readonly ServerRequest[], others: readonly string[]): readonly string[] {
  const names = others.filter((name) => name !== '');
  for (const request of requests) {
    names.push(...request.keys);
    const ticket = 'queue' in request ? request.queue : undefined;
    for (const queue of ticket?.queues ?? ('queues' in request ? request.queues : undefined) ?? []) {
      // What wakes a waiter looks at the barrier, too.
      names.push(queue, queue + BARRIER);
    }
    if ('sharing' in request && request.sharing) names.push(...request.sharing.barriers);
    if ('barriers' in request) names.push(...request.barriers);
    if ('entry' in request) names.push(request.entry);
  }
  // Requests of one turn may have names in common.
  return requests.length === 1 ? names : [...new Set(names)];
}

type SendPart = (part: PartitionRequest, reply: ReplyCallback) => void;

// Carries out a request to several partitions, as if they were one server.
export class SplitRequest {
  private readonly answers: (MasterReply | undefined)[];
  private pending: number;

  constructor(
    private readonly request: MasterRequest,
    private readonly parts: readonly PartitionRequest[],
    private readonly names: ClusterNames,
    private readonly send: SendPart,
    private readonly reply: ReplyCallback,
  ) {
    this.answers = parts.map(() => undefined);
    this.pending = parts.length;
  }

  // In turn, each partition is asked only when the one before has granted: attempts that follow a refusal would
  // otherwise block one another.
  // Protocol 12.8
  run(inTurn: boolean): void {
    if (inTurn) this.next(0);
    else this.parts.forEach((part, index) => this.send(part, (answer) => this.note(index, answer)));
  }

  private next(index: number): void {
    const part = this.parts[index];
    if (!part || ('withdrawn' in this.request && this.request.withdrawn)) {
      this.conclude();
      return;
    }
    this.send(part, (answer) => {
      this.answers[index] = answer;
      if (answer.kind === 'granted') this.next(index + 1);
      else this.conclude();
    });
  }

  private note(index: number, answer: MasterReply): void {
    this.answers[index] = answer;
    if (--this.pending === 0) this.conclude();
  }

  private conclude(): void {
    const { request, parts } = this;
    const answers = this.answers.flatMap((answer) => answer ?? []);
    const refusal = answers.length < parts.length ? (worstOf(answers) ?? NOT_ASKED) : worstOf(answers);
    if (request.op === 'draw' && !refusal) this.agree(answers);
    else {
      if (refusal && request.op === 'acquire') this.giveBack();
      this.reply(refusal ?? combined(answers));
    }
  }

  // Protocol 12.8
  private giveBack(): void {
    this.parts.forEach(({ partition, request }, index) => {
      const answer = this.answers[index];
      const isTaken = answer && (answer.kind === 'granted' || ('sent' in answer && answer.sent));
      if (!isTaken || request.op !== 'acquire') return;
      const { keys, token, ttl, sharing } = request;
      const queues = keys.map((key) => this.names.queueOf(partition, key));
      const isShared = sharing !== undefined;
      this.send(
        { partition, request: { op: 'release', keys, token, ttl, queues, isShared, keepFor: 0 } },
        () => undefined,
      );
    });
  }

  // A token is as large in every partition as the largest that one of them has drawn.
  // Protocol 9.6
  private agree(answers: readonly MasterReply[]): void {
    const fences = answers.map((answer) => ('fence' in answer ? (answer.fence ?? 0) : 0));
    const largest = Math.max(...fences);
    const behind = this.parts.filter((_, index) => fences[index] !== largest);
    if (behind.length === 0) {
      this.reply({ kind: 'granted', fence: largest });
      return;
    }
    const raised = behind.map(({ partition, request }) => ({
      partition,
      request: { ...(request as MasterRequest & { op: 'draw' }), atLeast: largest, isFirst: false },
    }));
    const request = { ...this.request, isFirst: false } as MasterRequest;
    const known = (answer: MasterReply): void =>
      this.reply(answer.kind === 'granted' ? { kind: 'granted', fence: Math.max(largest, answer.fence ?? 0) } : answer);
    new SplitRequest(request, raised, this.names, this.send, known).run(false);
  }
}

// A holder is reported first, since waiting for it can help.
function worstOf(answers: readonly MasterReply[]): MasterReply | undefined {
  const held = answers.filter((answer) => answer.kind === 'held');
  if (held.length === 0) return answers.find(({ kind }) => kind !== 'granted');
  const remaining = held.map((answer) => answer.remaining);
  const waiting = held.flatMap((answer) => answer.waiting ?? []);
  return {
    ...(held[0] as MasterReply & { kind: 'held' }),
    remaining: remaining.includes(undefined) ? undefined : Math.max(...remaining.map(Number)),
    ...(waiting.length > 0 && { waiting: Math.max(...waiting) }),
  };
}

function combined(answers: readonly MasterReply[]): MasterReply {
  const has = (name: 'hasWaiters' | 'healed'): boolean =>
    answers.some((answer) => answer.kind === 'granted' && answer[name] === true);
  return {
    ...GRANTED,
    ...(has('hasWaiters') && { hasWaiters: true }),
    ...(has('healed') && { healed: true }),
  };
}
