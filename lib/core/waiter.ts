import { type Clock, elapsedSince, type Instant, type Timer } from './clock.js';

/** Why a waiter is woken: a master keeps a key for it, or something else has changed that is worth a look. */
export type Waking = 'next' | 'look';

/**
 * One acquisition that may have to wait.
 *
 * It is woken by whatever could change its situation, and looks for itself what has changed.
 */
export class Waiter {
  private readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  private waking: Waking | undefined;
  private ended = false;
  /** Milliseconds that were spent in pauses; `undefined` unless somebody wants to know. */
  paused: number | undefined;
  /** Cuts short what this waiter is doing instead of pausing; called when it is stopped. */
  interrupt: { giveUp(): void } | undefined;

  constructor(
    private readonly clock: Clock,
    /** Milliseconds. */
    private readonly budget: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.since = clock.read();
    if (!signal) return;
    this.abort = () => this.stop(signal.reason);
    signal.addEventListener('abort', this.abort, { once: true });
  }

  /** Milliseconds since this waiter began. */
  get waited(): number {
    return elapsedSince(this.clock, this.since);
  }

  /** Milliseconds of the waiting budget that are left, never negative. */
  get left(): number {
    return Math.max(0, this.budget - this.waited);
  }

  /** Whether there is nothing left to wait for. */
  get isOver(): boolean {
    return this.left <= 0;
  }

  /** Whether this waiter waits no more. */
  get hasEnded(): boolean {
    return this.ended;
  }

  /** Whether waiting was stopped, by the signal or otherwise. */
  get isStopped(): boolean {
    return this.stopped !== undefined;
  }

  /** Lets a pause end now. If there is none, the next one does not start. */
  wake(why: Waking = 'look'): void {
    if (this.waking !== 'next') this.waking = why;
    this.resume?.();
  }

  /** Ends what this waiter is doing, and every later pause, by throwing `reason`. */
  stop(reason: unknown): void {
    this.stopped ??= { reason };
    this.interrupt?.giveUp();
    this.resume?.();
  }

  /** Throws if waiting was stopped. */
  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  /**
   * Returns when somebody wakes this waiter, when `delay` milliseconds have passed, or when the budget has ended.
   *
   * @returns why somebody woke this waiter; `undefined` if nobody did
   * @throws what `stop` was given, or the signal's reason
   */
  async pause(delay?: number): Promise<Waking | undefined> {
    this.check();
    if (this.waking || this.isOver || delay === 0) return this.takeWakeUp();
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
    return this.takeWakeUp();
  }

  private takeWakeUp(): Waking | undefined {
    const { waking } = this;
    this.waking = undefined;
    return waking;
  }

  private awaitDeadline(): void {
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    this.deadline = this.clock.schedule(Math.ceil(this.left), () => (this.isOver ? this.wake() : this.awaitDeadline()));
  }

  /** Waiting is over, whatever came of it. */
  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.signal?.removeEventListener('abort', this.abort);
  }
}
