import type { Clock, Instant } from '../core/clock.js';
import { elapsedSince } from '../core/clock.js';
import {
  type AcquireRequest,
  type MasterReply,
  type DrawRequest,
  type ExtendRequest,
  GRANTED,
  GRANTED_WITH_WAITERS,
  HEALED,
  type HeldReply,
  type LeaveRequest,
  type QueueTicket,
  type ReleaseRequest,
  type MasterRequest,
  RESERVATION_LIFE,
} from '../core/master.interface.js';
import { MemoryCounters } from './memory-counters.js';
import type { MemoryQueues } from './memory-queues.js';

interface Entry {
  token: string;
  since: Instant;
  ttl: number;
}

/** This many keys are checked for expiry at each acquisition, so that forgotten keys do not accumulate. */
const SWEEP = 4;

const RESERVED = 'reserved for ';

/** The value that replaces a token in a key that is reserved for the process that was notified. */
function reservedFor(waiter: string): string {
  return RESERVED + waiter;
}

/** The data of a master and its operations: those of the Redis script, in memory. */
export class MemoryStore {
  private readonly entries = new Map<string, Entry>();
  private readonly counters = new MemoryCounters();
  private sweeper: IterableIterator<[string, Entry]> | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly queues: MemoryQueues,
  ) {}

  /** Number of keys that are held. */
  get size(): number {
    for (const key of [...this.entries.keys()]) this.remainingOf(key);
    return this.entries.size;
  }

  /** Forgets all keys and counters. */
  clear(): void {
    this.entries.clear();
    this.counters.clear();
  }

  /** Carries out a request at once. */
  answer(request: MasterRequest): MasterReply {
    switch (request.op) {
      case 'acquire':
        return this.acquire(request);
      case 'extend':
        return this.extend(request);
      case 'release':
        return this.release(request);
      case 'draw':
        return this.draw(request);
      case 'leave':
        return this.leave(request);
      case 'inspect':
        return this.longestHeld(request.keys) ?? GRANTED;
      case 'probe':
        return GRANTED;
    }
  }

  private acquire({ keys, token, ttl, queue }: AcquireRequest): MasterReply {
    this.sweep();
    const held = this.longestHeld(keys, queue && reservedFor(queue.waiter));
    if (held && queue) this.enqueue(keys, queue);
    if (held) return held;
    this.set(keys, token, ttl);
    for (const name of queue?.queues ?? []) this.queues.leave(name, queue?.waiter ?? '');
    const hasWaiters = queue?.queues.some((name) => !this.queues.isEmpty(name));
    return hasWaiters ? GRANTED_WITH_WAITERS : GRANTED;
  }

  private draw(request: DrawRequest): MasterReply {
    const { keys, token } = request;
    const isOurs = keys.every((key) => this.remainingOf(key) > 0 && this.entries.get(key)?.token === token);
    return isOurs ? { ...GRANTED, fence: this.counters.draw(request) } : { kind: 'held', remaining: undefined };
  }

  private enqueue(keys: readonly string[], { queues, waiter, waited }: QueueTicket): void {
    const since = this.clock.read().monotonic - waited;
    queues.forEach((queue, i) => {
      const key = keys[i] as string;
      if (this.remainingOf(key) === 0) return;
      // A reservation is useless while another key is held: pass it to the next waiter.
      if (this.entries.get(key)?.token === reservedFor(waiter)) this.free(key, queue);
      else this.queues.join(queue, waiter, since);
    });
  }

  /** Frees a key, and reserves it for a moment for the next waiter that listens. Returns whether there is one. */
  private free(key: string, queue: string): boolean {
    this.entries.delete(key);
    const next = this.queues.wakeNext(queue, key);
    if (next !== undefined) this.set([key], reservedFor(next), RESERVATION_LIFE);
    return next !== undefined;
  }

  private leave({ keys, queues, waiter }: LeaveRequest): MasterReply {
    queues.forEach((queue, i) => {
      const key = keys[i] as string;
      this.queues.leave(queue, waiter);
      if (this.entries.get(key)?.token === reservedFor(waiter)) this.free(key, queue);
    });
    return GRANTED;
  }

  private extend({ keys, token, ttl }: ExtendRequest): MasterReply {
    const held = this.longestHeld(keys, token);
    if (held) return held;
    const isSetAgain = keys.some((key) => this.remainingOf(key) === 0);
    this.set(keys, token, ttl);
    return isSetAgain ? HEALED : GRANTED;
  }

  private release({ keys, queues, token, keepFor }: ReleaseRequest): MasterReply {
    let hasWaiters = false;
    for (const [i, queue] of queues.entries()) {
      const key = keys[i] as string;
      const owner = this.remainingOf(key) > 0 ? this.entries.get(key)?.token : undefined;
      if (owner?.startsWith(RESERVED)) hasWaiters = true;
      if (owner !== undefined && owner !== token) continue;
      if (keepFor === 0) {
        hasWaiters = this.free(key, queue) || hasWaiters;
      } else if (owner !== undefined) {
        this.set([key], token, keepFor);
        // Wake the next waiter: the key now expires at another time than was reported to it.
        this.queues.wakeNext(queue, key);
      }
    }
    return hasWaiters ? GRANTED_WITH_WAITERS : GRANTED;
  }

  private set(keys: readonly string[], token: string, ttl: number): void {
    const since = this.clock.read();
    for (const key of keys) this.entries.set(key, { token, since, ttl });
  }

  /** The longest remaining time of a key that another token than `owner` holds. */
  private longestHeld(keys: readonly string[], owner?: string): HeldReply | undefined {
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
