import type { Clock, Instant, Timer } from '../redlock/clock.js';
import { ListMember } from '../redlock/linked-list.js';
import type { PassedLock, Successor } from '../redlock/terms.js';
import type { CallSettings } from '../settings/settings.js';
import type { LockObserver, WakeCause } from '../operate/observer.js';

interface Work {
  giveUp(): void;
}

interface WaiterOptions {
  readonly clock: Clock;
  readonly observer: Pick<LockObserver, 'woken'>;
  readonly resources: readonly string[];
  readonly call: CallSettings;
}

// Every event that could change the situation of an acquisition wakes it, and it then finds out what has changed.
export class Waiter extends ListMember<Waiter> implements Successor {
  readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  private cause: WakeCause | undefined;
  private ended = false;
  // Milliseconds since its observer has begun to measure.
  paused = 0;
  // That it waits.
  isReported = false;
  private work: Work | undefined;
  // The lock that comes with its turn.
  passed: PassedLock | undefined;

  readonly resources: readonly string[];
  readonly call: CallSettings;
  private readonly clock: Clock;
  private readonly observer: Pick<LockObserver, 'woken'>;

  constructor({ clock, observer, resources, call }: WaiterOptions) {
    super();
    this.clock = clock;
    this.observer = observer;
    this.resources = resources;
    this.call = call;
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
  // Protocol 3.4
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

  // The only way to end a pause early, unless it is stopped. If there is no pause, the next one ends at once.
  // `master`: which one has notified this process.
  wake(cause: WakeCause, master?: string): void {
    // What was reserved must not be forgotten.
    if (this.cause !== 'reserved') this.cause = cause;
    if (this.resume) this.observer.woken?.(this.resources, cause, master);
    this.resume?.();
  }

  // Itself, if all that it waits for is one exclusive lock of this ttl.
  successorFor(ttl: number): this | undefined {
    const { call, resources } = this;
    const isAlike = call.ttl === ttl && !call.isShared && resources.length === 1;
    return isAlike && !call.outlivesShutdown && this.resume && !this.stopped && !this.isOver ? this : undefined;
  }

  // The end of the lock before wakes it.
  take(passed: PassedLock): void {
    this.passed = passed;
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

  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  // Returns when this waiter is woken, when `delay` milliseconds have passed, or when the budget has ended. `undefined`
  // if it was not woken.
  async pause(delay?: number): Promise<WakeCause | undefined> {
    this.check();
    const began = this.waited;
    const left = this.leftAfter(began);
    if (this.cause || left <= 0 || delay === 0) return this.takeCause();
    if (!this.deadline) this.awaitDeadline();
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (delay !== undefined && delay < left) timer = this.clock.schedule(delay, resolve);
    });
    this.resume = undefined;
    this.paused += this.waited - began;
    timer?.cancel();
    this.check();
    return this.takeCause();
  }

  private leftAfter(waited: number): number {
    return Math.max(0, this.call.wait - waited); // @mutant budget-counted-from-each-attempt
  }

  private takeCause(): WakeCause | undefined {
    const { cause } = this;
    this.cause = undefined;
    return cause;
  }

  private awaitDeadline(): void {
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    this.deadline = this.clock.schedule(Math.ceil(this.left), () => {
      if (this.isOver) this.wake('deadline');
      else this.awaitDeadline();
    });
  }

  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.call.signal?.removeEventListener('abort', this.abort); // @mutant listener-of-a-caller-kept
  }
}
