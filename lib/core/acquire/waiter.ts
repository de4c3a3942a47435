import type { Clock, Instant, Timer } from '../clock.js';
import type { PassedLock } from './process-queue.js';
import type { RemoteWait } from './places.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';

// `next`: a master has reserved a key. `retry`: another change is worth an attempt.
export type WakeReason = 'next' | 'retry';

interface Work {
  giveUp(): void;
}

// Every event that could change the situation of an acquisition wakes it, and it then finds out what has changed.
export class Waiter {
  readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  private reason: WakeReason | undefined;
  private ended = false;
  // Milliseconds; `undefined` unless an observer measures them.
  paused: number | undefined;
  // Of a lock that it would take from its previous holder in this process; `undefined` if it would take none.
  takesTtl: number | undefined;
  private offered: PassedLock | undefined;
  // `undefined` if it would take none; false if it does not take these.
  takesPlaces: ((places: RemoteWait) => boolean) | undefined;
  private work: Work | undefined;

  constructor(
    private readonly clock: Clock,
    // Milliseconds.
    private readonly budget: number,
    private readonly signal: AbortSignal | undefined,
  ) {
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
    return Math.max(0, this.budget - this.waited); // @mutant budget-counted-from-each-attempt
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
  offerPlaces(places: RemoteWait): boolean {
    if (this.ended || this.isStopped || this.isOver) return false;
    return this.takesPlaces?.(places) ?? false;
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

  // The promise must never reject.
  async unlessStopped(promise: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      this.interrupt = { giveUp: resolve };
      void promise.then(resolve);
    });
    this.interrupt = undefined;
  }

  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  // Returns when this waiter is woken, when `delay` milliseconds have passed, or when the budget has ended. `undefined`
  // if it was not woken.
  async pause(delay?: number): Promise<WakeReason | undefined> {
    this.check();
    if (this.reason || this.isOver || delay === 0) return this.takeReason();
    if (!this.deadline) this.awaitDeadline();
    let timer: Timer | undefined;
    const began = this.paused === undefined ? undefined : this.clock.read().monotonic;
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (delay !== undefined && delay < this.left) timer = this.clock.schedule(delay, resolve);
    });
    this.resume = undefined;
    if (began !== undefined) this.paused = (this.paused ?? 0) + this.clock.read().monotonic - began;
    timer?.cancel();
    this.check();
    return this.takeReason();
  }

  private takeReason(): WakeReason | undefined {
    const { reason } = this;
    this.reason = undefined;
    return reason;
  }

  private awaitDeadline(): void {
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    this.deadline = this.clock.schedule(Math.ceil(this.left), () => (this.isOver ? this.wake() : this.awaitDeadline()));
  }

  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.signal?.removeEventListener('abort', this.abort); // @mutant listener-of-a-caller-kept
  }
}

interface PermitContext {
  readonly clock: Clock;
  readonly waiter: Waiter;
  // The attempt that follows is made even if the waiting budget ends before.
  readonly isGuaranteed: boolean;
}

// Called before each attempt and not once when waiting begins, so that the announcement is recent when the lock is
// granted. In milliseconds: the largest ttl that all masters know.
export function allowedTtl({ ttl, minHold }: CallSettings, witness: Witness, now?: Instant): number | Promise<number> {
  return witness.announceTtl(Math.max(ttl, minHold), now);
}

// `undefined` if the budget ends first.
export async function whenPermitted(
  wanted: CallSettings,
  permitted: Promise<number>,
  context: PermitContext,
): Promise<CallSettings | undefined> {
  const ttl = await unlessOver(permitted, context);
  context.waiter.check();
  return ttl === undefined ? undefined : cutTo(ttl, wanted);
}

// `undefined` if the waiter is stopped first, or if its budget ends and this is not its guaranteed attempt.
async function unlessOver(
  permitted: Promise<number>,
  { clock, waiter, isGuaranteed }: PermitContext,
): Promise<number | undefined> {
  let timer: Timer | undefined;
  const over = new Promise<undefined>((resolve) => {
    waiter.interrupt = { giveUp: () => resolve(undefined) };
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    const arm = (): void => {
      timer = clock.schedule(Math.ceil(waiter.left), () => (waiter.isOver ? resolve(undefined) : arm()));
    };
    if (!isGuaranteed) arm();
  });
  const ttl = await Promise.race([permitted, over]);
  timer?.cancel();
  waiter.interrupt = undefined;
  return ttl;
}

export function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
