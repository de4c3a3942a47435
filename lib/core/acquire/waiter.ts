import type { Clock, Instant, Timer } from '../clock.js';
import type { PassedLock } from './process-queue.js';
import type { PlacesOnMasters } from './places.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';

/** Why a waiter is woken: a master has reserved a key (`next`), or another change is worth an attempt (`retry`). */
export type WakeReason = 'next' | 'retry';

/** What can be interrupted. */
interface Work {
  giveUp(): void;
}

/**
 * One acquisition that may have to wait.
 *
 * Every event that could change its situation wakes it, and it then finds out for itself what has changed.
 */
export class Waiter {
  readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  private reason: WakeReason | undefined;
  private ended = false;
  /** Milliseconds spent in pauses; `undefined` unless an observer measures them. */
  paused: number | undefined;
  /** The ttl of a lock that it would take from its previous holder in this process; `undefined` if it would take none. */
  takesTtl: number | undefined;
  private offered: PassedLock | undefined;
  /** Takes over the places of another waiter on the masters; `undefined` if it would take none. Returns whether it does. */
  takesPlaces: ((places: PlacesOnMasters) => boolean) | undefined;
  private work: Work | undefined;

  constructor(
    private readonly clock: Clock,
    /** Milliseconds. */
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

  /**
   * Milliseconds since this waiter was created. By the monotonic clock, like every timer: a wall clock that is set must
   * not end a wait, and a machine that is suspended does not wait.
   * Protocol 3.5.
   */
  get waited(): number {
    return this.clock.read().monotonic - this.since.monotonic;
  }

  /** Milliseconds left of the waiting budget. Never negative. */
  get left(): number {
    return Math.max(0, this.budget - this.waited); // @mutant budget-counted-from-each-attempt
  }

  /** Whether the waiting budget is used up. */
  get isOver(): boolean {
    return this.left <= 0;
  }

  /** Whether the wait is over, whatever its result. */
  get hasEnded(): boolean {
    return this.ended;
  }

  /** Whether the wait was stopped, by the signal or otherwise. */
  get isStopped(): boolean {
    return this.stopped !== undefined;
  }

  /** Ends the current pause. If there is none, the next one ends at once. */
  wake(why: WakeReason = 'retry'): void {
    if (this.reason !== 'next') this.reason = why;
    this.resume?.();
  }

  /** Offers a lock that its holder in this process passes on. Returns whether this waiter takes it. */
  offer(lock: PassedLock): boolean {
    // During an attempt it asks the masters, and may get a lock of its own.
    const isPausing = this.resume !== undefined && !this.hasOffer;
    if (!isPausing || lock.ttl !== this.takesTtl || this.ended || this.isStopped || this.isOver) return false;
    this.offered = lock;
    this.wake();
    return true;
  }

  /** Offers the places of a waiter before it, which gives up. Returns whether this waiter takes them. */
  offerPlaces(places: PlacesOnMasters): boolean {
    if (this.ended || this.isStopped || this.isOver) return false;
    return this.takesPlaces?.(places) ?? false;
  }

  /** Whether it has taken a lock that was offered, and has not noticed yet. */
  get hasOffer(): boolean {
    return this.offered !== undefined;
  }

  /** The lock that was offered, once. */
  takeOffered(): PassedLock | undefined {
    const { offered } = this;
    this.offered = undefined;
    return offered;
  }

  /** The work that this waiter does outside its pauses. It is given up when the waiter is stopped, or has been. */
  set interrupt(work: Work | undefined) {
    this.work = work;
    if (this.stopped) work?.giveUp();
  }

  /** Interrupts this waiter. The current pause and every later one throw `reason`. */
  stop(reason: unknown): void {
    // Protocol 5.1
    this.stopped ??= { reason };
    this.work?.giveUp();
    this.resume?.();
  }

  /** Resolves with a promise that never rejects, or when this waiter is stopped. */
  async unlessStopped(promise: Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      this.interrupt = { giveUp: resolve };
      void promise.then(resolve);
    });
    this.interrupt = undefined;
  }

  /** @throws the reason with which the wait was stopped, if it was */
  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  /**
   * Returns when this waiter is woken, when `delay` milliseconds have passed, or when the budget has ended.
   *
   * @returns why this waiter was woken; `undefined` if it was not
   * @throws the reason with which the wait was stopped, by `stop` or by the signal
   */
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

  /** Ends the wait, whatever its result. */
  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.signal?.removeEventListener('abort', this.abort); // @mutant listener-of-a-caller-kept
  }
}

interface PermitContext {
  readonly clock: Clock;
  readonly waiter: Waiter;
  /** Whether the attempt that follows is made even if the waiting budget ends before. */
  readonly isGuaranteed: boolean;
}

/**
 * Announces the ttl of a call to the masters. Called before each attempt and not once when waiting begins, so that the
 * announcement is recent when the lock is granted.
 *
 * @returns the largest ttl that all masters know, in milliseconds
 */
export function allowedTtl({ ttl, minHold }: CallSettings, witness: Witness, now?: Instant): number | Promise<number> {
  return witness.announceTtl(Math.max(ttl, minHold), now);
}

/**
 * Waits for a permit, and returns the call that it permits.
 *
 * @returns `undefined` if the budget ends first
 * @throws the reason with which the waiter was stopped
 */
export async function whenPermitted(
  wanted: CallSettings,
  permitted: Promise<number>,
  context: PermitContext,
): Promise<CallSettings | undefined> {
  const ttl = await unlessOver(permitted, context);
  context.waiter.check();
  return ttl === undefined ? undefined : cutTo(ttl, wanted);
}

/** Resolves with `undefined` if the waiter is stopped first, or if its budget ends and this is not its guaranteed attempt. */
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

/** The call with its ttl and `minHold` cut to a ttl in milliseconds. */
export function cutTo(ttl: number, call: CallSettings): CallSettings {
  if (ttl >= call.ttl && ttl >= call.minHold) return call;
  return { ...call, ttl: Math.min(call.ttl, ttl), minHold: Math.min(call.minHold, ttl) };
}
