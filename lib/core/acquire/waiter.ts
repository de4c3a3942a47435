import type { Clock, Instant, Timer } from '../clock.js';
import type { Blamed } from '../contention/contention.js';
import { ListMember } from './linked-list.js';
import type { PassedLock } from './leased-keys.js';
import type { RemoteWait } from './remote-wait.js';
import type { CallSettings } from '../settings/settings.js';

// `next`: a master has reserved a key. `retry`: another change is worth an attempt.
export type WakeReason = 'next' | 'retry';

// The queues in which the call chain of a nested call holds a place now. No lock keeps it: work that begins its next run
// inside of itself would keep the locks of all runs.
export type HeldByChain = () => readonly string[];

interface Work {
  giveUp(): void;
}

// Every event that could change the situation of an acquisition wakes it, and it then finds out what has changed.
export class Waiter extends ListMember<Waiter> {
  readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  // What to do when the budget ends, beside what a pause does.
  private overrun: (() => void) | undefined;
  private reason: WakeReason | undefined;
  private ended = false;
  // Milliseconds since its observer has begun to measure.
  paused = 0;
  // Milliseconds of all its pauses, by the instance that was named as the holder. Absent before the first one.
  blamed: Map<string | undefined, number> | undefined;
  // Of a lock that it would take from its previous holder in this process; `undefined` if it would take none.
  takesTtl: number | undefined;
  private offered: PassedLock | undefined;
  // `undefined` if it would take none; false if it does not take these.
  takesRemoteWait: ((remoteWait: RemoteWait) => boolean) | undefined;
  private work: Work | undefined;

  constructor(
    private readonly clock: Clock,
    readonly resources: readonly string[],
    readonly call: CallSettings,
    readonly held?: HeldByChain | undefined,
  ) {
    super();
    const { signal } = call;
    this.since = clock.read();
    if (!signal) return;
    // By an observer, for example, since the call began.
    if (signal.aborted) this.stop(signal.reason);
    this.abort = () => this.stop(signal.reason);
    signal.addEventListener('abort', this.abort, { once: true });
  }

  // By the monotonic clock, like every timer: a wall clock that is set must not end a wait, and a machine that is
  // suspended does not wait.
  // Protocol 3.5
  get waited(): number {
    return this.clock.read().monotonic - this.since.monotonic;
  }

  // Milliseconds.
  get left(): number {
    return this.leftAfter(this.waited);
  }

  get isOver(): boolean {
    return this.left <= 0;
  }

  get hasEnded(): boolean {
    return this.ended;
  }

  get isStopped(): boolean {
    return this.stopped !== undefined;
  }

  // If there is no pause, the next one ends at once.
  wake(why: WakeReason = 'retry'): void {
    if (this.reason !== 'next') this.reason = why;
    this.resume?.();
  }

  // False if this waiter does not take it.
  offer(lock: PassedLock): boolean {
    // During an attempt it asks the masters, and may get a lock of its own.
    const isPausing = this.resume !== undefined && !this.hasOffer;
    if (!isPausing || lock.ttl !== this.takesTtl || this.ended || this.isStopped || this.isOver) return false;
    this.offered = lock;
    this.wake();
    return true;
  }

  // False if this waiter does not take them.
  offerRemoteWait(remoteWait: RemoteWait): boolean {
    if (this.ended || this.isStopped || this.isOver) return false;
    return this.takesRemoteWait?.(remoteWait) ?? false;
  }

  // Until it has noticed.
  get hasOffer(): boolean {
    return this.offered !== undefined;
  }

  takeOffered(): PassedLock | undefined {
    const { offered } = this;
    this.offered = undefined;
    return offered;
  }

  // What it does outside its pauses. It is given up when the waiter is stopped, or has been.
  set interrupt(work: Work | undefined) {
    this.work = work;
    if (this.stopped) work?.giveUp();
  }

  // The current pause and every later one throw `reason`.
  stop(reason: unknown): void {
    // Protocol 5.1
    this.stopped ??= { reason };
    this.work?.giveUp();
    this.resume?.();
  }

  // `undefined` if this waiter is stopped first or, unless it `outlasts` its budget, if that ends. The promise must never
  // reject.
  async unlessOver<T>(promise: Promise<T>, outlasts = false): Promise<T | undefined> {
    const result = await new Promise<T | undefined>((resolve) => {
      const giveUp = (): void => resolve(undefined);
      this.interrupt = { giveUp };
      if (!outlasts) {
        this.overrun = giveUp;
        if (!this.deadline) this.awaitDeadline();
      }
      void promise.then(resolve);
    });
    this.interrupt = this.overrun = undefined;
    return result;
  }

  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  // Returns when this waiter is woken, when `delay` milliseconds have passed, or when the budget has ended. `undefined`
  // if it was not woken. `watch` begins to note which holder is to blame, and its result ends that; without it, none is.
  async pause(delay?: number, watch?: () => () => Blamed): Promise<WakeReason | undefined> {
    this.check();
    const began = this.waited;
    const left = this.leftAfter(began);
    if (this.reason || left <= 0 || delay === 0) return this.takeReason();
    if (!this.deadline) this.awaitDeadline();
    const blamed = watch?.();
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (delay !== undefined && delay < left) timer = this.clock.schedule(delay, resolve);
    });
    this.resume = undefined;
    this.blame(blamed?.() ?? new Map([[undefined, this.waited - began]])); // @mutant ended-wait-not-blamed
    timer?.cancel();
    this.check();
    return this.takeReason();
  }

  private leftAfter(waited: number): number {
    return Math.max(0, this.call.wait - waited); // @mutant budget-counted-from-each-attempt
  }

  private blame(pause: Blamed): void {
    this.blamed ??= new Map();
    for (const [holder, milliseconds] of pause) {
      if (milliseconds <= 0) continue;
      this.paused += milliseconds;
      this.blamed.set(holder, (this.blamed.get(holder) ?? 0) + milliseconds);
    }
  }

  private takeReason(): WakeReason | undefined {
    const { reason } = this;
    this.reason = undefined;
    return reason;
  }

  private awaitDeadline(): void {
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    this.deadline = this.clock.schedule(Math.ceil(this.left), () => {
      if (this.isOver) {
        this.wake();
        this.overrun?.();
      } else this.awaitDeadline();
    });
  }

  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.call.signal?.removeEventListener('abort', this.abort); // @mutant listener-of-a-caller-kept
  }
}
