import type { Clock } from '../redlock/clock.js';
import { REVOKED } from '../redlock/holder.js';
import {
  WRITER_LIFE,
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  type NotificationListener,
  type OperatorMaster,
  type RefusedReply,
  type ReplyCallback,
  RESERVATION_SCALE,
} from '../masters/master.interface.js';
import type { UnreachableReply } from '../redlock/server.js';
import { queueMicrotask } from './manual-clock.js';
import { MemoryDatabase, type OperationContext } from './memory-database.js';
import { carryOut, carryOutState, type StateContext } from './operations.js';

const DOWN: UnreachableReply = Object.freeze({ kind: 'unreachable', reason: 'taken down', sent: false });
// The answer of a server, too.
const SHARED: RefusedReply = Object.freeze({
  kind: 'refused',
  code: 'WRONGTYPE',
  reason: 'the key has shared holders',
});
const CUT_OFF: UnreachableReply = Object.freeze({ ...DOWN, sent: true });

/**
 * A master in the memory of this process: real locks and real contention, without a server.
 *
 * It can also fail like a server: see {@link pause}, {@link takeDown} and {@link flush}.
 */
export class MemoryMaster implements Master {
  private readonly data: MemoryDatabase;
  private readonly context: OperationContext;
  private readonly states: StateContext;
  private readonly waiters = new Map<string, NotificationListener>();
  private waiting: (() => void)[] | undefined;
  private down = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    clock: Clock,
    readonly name = 'memory',
  ) {
    this.data = new MemoryDatabase(clock);
    this.context = {
      data: this.data,
      counters: 'counters',
      lives: { reservation: RESERVATION_SCALE, queue: Infinity, writer: WRITER_LIFE },
      now: () => clock.read().monotonic,
      microseconds: () => Math.floor(clock.read().wall * 1_000),
      publish: (waiter, key) => this.notify(waiter, key),
      // No command of this database fails.
      attempt: (command) => command(),
    };
    this.states = { data: this.data, marker: '' };
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    if (this.down) {
      reply(DOWN);
      return;
    }
    const act = (): void => reply(this.down ? CUT_OFF : this.answer(request));
    if (this.waiting) this.waiting.push(act);
    // As with a server, the answer never arrives before `ask` returns.
    else queueMicrotask(act);
  }

  connect(): Promise<void> {
    return Promise.resolve();
  }

  problem(): UnreachableReply | undefined {
    return this.down ? DOWN : undefined;
  }

  identity(): MasterIdentity {
    return {};
  }

  /** @internal */
  readonly operator: OperatorMaster = {
    read: (key) =>
      this.whenUp(() => {
        const value = this.data.get(key);
        if (value === undefined && this.data.exists(key)) return SHARED;
        return value === undefined ? null : { value, remaining: this.data.pttl(key) };
      }),
    values: (keys) => this.whenUp(() => keys.map((key) => this.data.get(key) ?? null)),
    revoke: (key, value) =>
      this.whenUp(() => {
        if (this.data.get(key) === undefined && this.data.exists(key)) return SHARED;
        if (this.data.get(key) !== value) return 0;
        const left = this.data.pttl(key);
        this.data.set(key, REVOKED, left);
        return left;
      }),
  };

  /** Never: its data lives as long as the process. */
  readonly isQuarantined = false;

  onReady(listener: () => void): void {
    // Several services can share this master, and each of them registers a listener.
    this.listeners.add(listener);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Number of keys that are held. */
  get size(): number {
    return this.data.size;
  }

  /** Stops answering, like a server that hangs. Requests in the meantime take effect at `resume`. */
  pause(): void {
    this.waiting ??= [];
  }

  /** Answers again, beginning with the requests made during the pause. */
  resume(): void {
    const waiting = this.waiting ?? [];
    this.waiting = undefined;
    for (const act of waiting) act();
  }

  /** Refuses new connections and breaks existing ones, like a server that is not running. Keeps its keys. */
  takeDown(): void {
    this.down = true;
    for (const act of this.waiting?.splice(0) ?? []) act();
  }

  /** Accepts connections again. */
  bringUp(): void {
    this.down = false;
    for (const listener of this.listeners) listener();
  }

  /** Forgets all keys and counters, like a server that restarts without its data. */
  flush(): void {
    this.data.clear();
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    if (listener) this.waiters.set(waiter, listener);
    else this.waiters.delete(waiter);
  }

  /** Number of keys for which a process waits. */
  get queued(): number {
    return this.data.queues;
  }

  // In the order of the requests, as a server would.
  private whenUp<T>(action: () => T): Promise<T | MasterReply> {
    return new Promise((resolve) => {
      const act = (): void => resolve(this.down ? CUT_OFF : action());
      if (this.waiting && !this.down) this.waiting.push(act);
      else act();
    });
  }

  private answer(request: MasterRequest): MasterReply {
    if ('entry' in request) return carryOutState(this.states, request);
    if (request.op === 'acquire' || request.op === 'pick') this.data.sweep();
    return carryOut(this.context, request);
  }

  private notify(waiter: string, key: string): number {
    const listener = this.waiters.get(waiter);
    if (!listener) return 0;
    queueMicrotask(() => listener(key));
    return 1;
  }
}
