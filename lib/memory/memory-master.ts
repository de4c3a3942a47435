import type { Clock, Instant } from '../core/clock.js';
import { elapsedSince } from '../core/clock.js';
import {
  type AcquireRequest,
  type Answer,
  type ConfirmRequest,
  type ExtendRequest,
  GRANTED,
  GRANTED_AMONG_OTHERS,
  type Held,
  type LeaveRequest,
  type Master,
  type MasterIdentity,
  type QueueTicket,
  type ReleaseRequest,
  type Reply,
  type Request,
  RESERVED_FOR,
  type Unreachable,
  type WakeUp,
} from '../core/master.interface.js';
import { queueMicrotask } from './event-loop.js';
import { MemoryCounters } from './memory-counters.js';
import { MemoryQueues } from './memory-queues.js';

interface Entry {
  token: string;
  since: Instant;
  ttl: number;
}

const DOWN: Unreachable = Object.freeze({ kind: 'unreachable', reason: 'taken down', sent: false });
const CUT_OFF: Unreachable = Object.freeze({ ...DOWN, sent: true });
/** So many keys are looked at for expiry whenever one is taken, so that forgotten keys do not pile up. */
const SWEEP = 4;

const RESERVED = 'reserved for ';

/** What stands in place of a token in a key that is kept for the process that was woken. */
function reservedFor(waiter: string): string {
  return RESERVED + waiter;
}

/**
 * A master in the memory of this process: real locks and real contention, without a server.
 *
 * It can fail like a server, too: see {@link pause}, {@link takeDown} and {@link flush}.
 */
export class MemoryMaster implements Master {
  private readonly entries = new Map<string, Entry>();
  private readonly queues = new MemoryQueues();
  private readonly counters = new MemoryCounters();
  private waiting: (() => void)[] | undefined;
  private down = false;
  private readonly listeners = new Set<() => void>();
  private sweeper: IterableIterator<[string, Entry]> | undefined;

  constructor(
    private readonly clock: Clock,
    readonly name = 'memory',
  ) {}

  ask(request: Request, reply: Reply): void {
    if (this.down) {
      reply(DOWN);
      return;
    }
    const act = (): void => reply(this.down ? CUT_OFF : this.answer(request));
    if (this.waiting) this.waiting.push(act);
    // Answers never come before `ask` returns, as with a server.
    else queueMicrotask(act);
  }

  connect(): Promise<void> {
    return Promise.resolve();
  }

  problem(): Unreachable | undefined {
    return this.down ? DOWN : undefined;
  }

  identity(): MasterIdentity {
    return {};
  }

  reconnect(): void {
    // There is no connection to replace.
  }

  onReady(listener: () => void): void {
    // Services that share this master each have one.
    this.listeners.add(listener);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Number of keys that are held. */
  get size(): number {
    for (const key of [...this.entries.keys()]) this.remainingOf(key);
    return this.entries.size;
  }

  /** Stops answering, like a server that hangs. What is asked meanwhile takes effect at `resume`. */
  pause(): void {
    this.waiting ??= [];
  }

  /** Answers again, beginning with what was asked during the pause. */
  resume(): void {
    const waiting = this.waiting ?? [];
    this.waiting = undefined;
    for (const act of waiting) act();
  }

  /** Refuses connections, like a server that is not running, and breaks those it has. Keeps its keys. */
  takeDown(): void {
    this.down = true;
    for (const act of this.waiting?.splice(0) ?? []) act();
  }

  /** Accepts connections again. */
  bringUp(): void {
    this.down = false;
    for (const listener of this.listeners) listener();
  }

  /** Forgets all keys, like a server that restarts without its data. */
  flush(): void {
    this.entries.clear();
    this.counters.clear();
  }

  listen(waiter: string, listener: WakeUp | undefined): void {
    this.queues.listen(waiter, listener);
  }

  /** Number of keys that somebody waits for. */
  get queued(): number {
    return this.queues.size;
  }

  private answer(request: Request): Answer {
    switch (request.op) {
      case 'acquire':
        return this.acquire(request);
      case 'extend':
        return this.extend(request);
      case 'release':
        return this.release(request);
      case 'confirm':
        return this.confirm(request);
      case 'leave':
        return this.leave(request);
      case 'inspect':
        return this.longestHeld(request.keys) ?? GRANTED;
    }
  }

  private acquire({ keys, token, ttl, queue, fence }: AcquireRequest): Answer {
    this.sweep();
    const held = this.longestHeld(keys, queue && reservedFor(queue.waiter));
    if (held && queue) this.lineUp(keys, queue);
    if (held) return held;
    this.set(keys, token, ttl);
    for (const name of queue?.queues ?? []) this.queues.leave(name, queue?.waiter ?? '');
    const crowded = queue?.queues.some((name) => !this.queues.isEmpty(name));
    const grant = crowded ? GRANTED_AMONG_OTHERS : GRANTED;
    return fence ? { ...grant, fence: this.counters.draw(fence) } : grant;
  }

  private confirm({ keys, token, fence }: ConfirmRequest): Answer {
    const isOurs = keys.every((key) => this.remainingOf(key) > 0 && this.entries.get(key)?.token === token);
    return isOurs ? { ...GRANTED, fence: this.counters.raise(fence) } : { kind: 'held', remaining: undefined };
  }

  private lineUp(keys: readonly string[], { queues, waiter, waited }: QueueTicket): void {
    const since = this.clock.read().monotonic - waited;
    queues.forEach((queue, i) => {
      const key = keys[i] as string;
      if (this.remainingOf(key) === 0) return;
      // What was reserved is of no use while another key is held: the next one's turn.
      if (this.entries.get(key)?.token === reservedFor(waiter)) this.free(key, queue);
      else this.queues.join(queue, waiter, since);
    });
  }

  /** Gives a key up. Whoever waits for it and listens finds it reserved for a moment. */
  private free(key: string, queue: string): boolean {
    this.entries.delete(key);
    const next = this.queues.wakeNext(queue, key);
    if (next !== undefined) this.set([key], reservedFor(next), RESERVED_FOR);
    return next !== undefined;
  }

  private leave({ keys, queues, waiter }: LeaveRequest): Answer {
    queues.forEach((queue, i) => {
      const key = keys[i] as string;
      this.queues.leave(queue, waiter);
      if (this.entries.get(key)?.token === reservedFor(waiter)) this.free(key, queue);
    });
    return GRANTED;
  }

  private extend({ keys, token, ttl, fence }: ExtendRequest): Answer {
    const held = this.longestHeld(keys, token);
    if (held) return held;
    // A key that is set again may have been another one's meanwhile, whose fencing token must not become ours, too.
    const isSetAgain = keys.some((key) => this.remainingOf(key) === 0);
    this.set(keys, token, ttl);
    if (fence && isSetAgain) this.counters.draw({ ...fence, floor: fence.token });
    else if (fence) this.counters.raise(fence);
    return GRANTED;
  }

  private release({ keys, queues, token, keepFor }: ReleaseRequest): Answer {
    let crowded = false;
    for (const [i, queue] of queues.entries()) {
      const key = keys[i] as string;
      const owner = this.remainingOf(key) > 0 ? this.entries.get(key)?.token : undefined;
      if (owner?.startsWith(RESERVED)) crowded = true;
      if (owner !== undefined && owner !== token) continue;
      if (keepFor === 0) {
        crowded = this.free(key, queue) || crowded;
      } else if (owner !== undefined) {
        this.set([key], token, keepFor);
        // Whoever waits learns that the key expires at another time than it was told.
        this.queues.wakeNext(queue, key);
      }
    }
    return crowded ? GRANTED_AMONG_OTHERS : GRANTED;
  }

  private set(keys: readonly string[], token: string, ttl: number): void {
    const since = this.clock.read();
    for (const key of keys) this.entries.set(key, { token, since, ttl });
  }

  /** The longest hold on one of the keys, other than by the owner. */
  private longestHeld(keys: readonly string[], owner?: string): Held | undefined {
    const times = keys.map((key) => (this.entries.get(key)?.token === owner ? 0 : this.remainingOf(key)));
    const remaining = Math.max(...times);
    return remaining > 0 ? { kind: 'held', remaining } : undefined;
  }

  private remainingOf(key: string): number {
    const entry = this.entries.get(key);
    if (!entry) return 0;
    const remaining = entry.ttl - elapsedSince(this.clock, entry.since);
    if (remaining > 0) return remaining;
    this.entries.delete(key);
    return 0;
  }

  private sweep(): void {
    for (let i = 0; i < SWEEP; i++) {
      this.sweeper ??= this.entries.entries();
      const next = this.sweeper.next();
      if (next.done) this.sweeper = undefined;
      else this.remainingOf(next.value[0]);
    }
  }
}
