import { TimerQueue } from './timer-queue.js';

/**
 * A moment, read from two clocks at once.
 *
 * Neither clock alone is enough: the monotonic clock stands still while a machine is suspended, and the wall clock can
 * be stepped back. Elapsed time is therefore the larger of the two differences.
 */
export interface Instant {
  /** Milliseconds of a clock that never runs backwards. */
  readonly monotonic: number;
  /** Milliseconds since the Unix epoch. */
  readonly wall: number;
}

/** A scheduled callback. */
export interface Timer {
  /** Cancels the callback. Has no effect if the callback has already run. */
  cancel(): void;
  /** Lets the process exit while this timer is pending. */
  unref(): Timer;
}

/** The only source of time in this library. Tests inject one that they advance by hand. */
export interface Clock {
  /** The present moment. */
  read(): Instant;
  /**
   * Calls `callback` after `delay` milliseconds.
   *
   * @param slack milliseconds by which the call may come early, so that it coincides with others; default: 0
   */
  schedule(delay: number, callback: () => void, slack?: number): Timer;
  /**
   * Calls `callback` once the event loop has read the input that is already waiting in its sockets, so that a stalled
   * process does not mistake answers that have arrived for missing ones.
   */
  afterInput(callback: () => void): void;
  /** Calls `callback` when the current work is done, so that requests made in the meantime can be sent together. */
  afterTurn(callback: () => void): void;
  /**
   * Calls `listener` within a second after the machine resumes from a suspension, as long as any timer is scheduled.
   * Timers stand still during the suspension.
   */
  onResume?(listener: () => void): void;
}

/** Milliseconds from one moment to another. Never negative. */
export function elapsedBetween(from: Instant, to: Instant): number {
  return Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0); // @mutant wall-clock-only, monotonic-only-across-a-suspend
}

/** Milliseconds since a moment. */
export function elapsedSince(clock: Clock, from: Instant): number {
  return elapsedBetween(from, clock.read());
}

/** Longest delay of the Node timer, in milliseconds. */
const LONGEST_SLEEP = 1_000;
/** Gradual corrections move a wall clock by less than this within a second, in milliseconds. */
const NOTICEABLE_SLEEP = 5;

/** The clocks and timers of this process. All timers share one Node timer. */
export class SystemClock implements Clock {
  private readonly timers = new TimerQueue((keepsAlive) => this.keepAlive(keepsAlive));
  private handle: NodeJS.Timeout | undefined;
  /** When `handle` fires. */
  private armedFor = Infinity;
  private readonly listeners: (() => void)[] = [];
  /** How far the wall clock was ahead of the monotonic one at the last check, in milliseconds. */
  private ahead = aheadOf(readClocks());

  read(): Instant {
    return readClocks();
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  schedule(delay: number, callback: () => void, slack = 0): Timer {
    const now = performance.now();
    const due = dueAt(now + delay, slack);
    const timer = this.timers.add(due, callback);
    if (due < this.armedFor) this.arm(due, now);
    return timer;
  }

  afterInput(callback: () => void): void {
    // Timers run before the poll phase and immediates after it. Two turns guarantee one complete poll phase in between,
    // whatever phase this is called from.
    setImmediate(() => setImmediate(callback));
  }

  afterTurn(callback: () => void): void {
    setImmediate(callback);
  }

  private arm(due: number, now: number): void {
    clearTimeout(this.handle);
    this.armedFor = due;
    // Node's timers stand still while the machine is suspended, so check the clocks every second.
    this.handle = setTimeout(() => this.fire(), Math.min(Math.ceil(due - now), LONGEST_SLEEP));
    if (!this.timers.keepsAlive) this.handle.unref();
  }

  private fire(): void {
    this.armedFor = Infinity;
    this.handle = undefined;
    try {
      // Node measures from the beginning of a turn of the event loop, so its timer can fire early.
      this.timers.run(performance.now());
      this.noticeResume();
    } finally {
      const next = this.timers.nextDue;
      if (next !== undefined && next < this.armedFor) this.arm(next, performance.now());
    }
  }

  private noticeResume(): void {
    const ahead = aheadOf(readClocks());
    const slept = ahead - this.ahead;
    this.ahead = ahead;
    if (slept > NOTICEABLE_SLEEP) for (const listener of this.listeners) listener();
  }

  private keepAlive(keepsAlive: boolean): void {
    if (keepsAlive) this.handle?.ref();
    else this.handle?.unref();
  }
}

function readClocks(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}

function aheadOf({ monotonic, wall }: Instant): number {
  return wall - monotonic;
}

/** With slack, due times are rounded down to multiples of a power of two, so that several timers coincide. */
function dueAt(moment: number, slack: number): number {
  const grid = slack < 2 ? 1 : 2 ** Math.floor(Math.log2(slack));
  return grid === 1 ? Math.ceil(moment) : Math.floor(moment / grid) * grid;
}
