import { TimerQueue } from './timer-queue.js';

/**
 * A moment, read from two clocks at once.
 *
 * Neither clock alone is enough: the monotonic one stands still while a machine is suspended, the wall clock can be
 * stepped back. Elapsed time is therefore the larger of the two differences.
 */
export interface Instant {
  /** Milliseconds of a clock that never goes back. */
  readonly monotonic: number;
  /** Milliseconds since the Unix epoch. */
  readonly wall: number;
}

/** A callback that waits for its time. */
export interface Timer {
  /** Forget the callback. Harmless when it has run already. */
  cancel(): void;
  /** Do not keep the process alive for this timer. */
  unref(): Timer;
}

/** The only source of time in this library. Tests inject one that they move by hand. */
export interface Clock {
  /** The present moment. */
  read(): Instant;
  /**
   * Calls back after `delay` milliseconds.
   *
   * @param slack milliseconds by which it may be earlier, so that it comes together with others; default: 0
   */
  schedule(delay: number, callback: () => void, slack?: number): Timer;
  /**
   * Calls back once the event loop has read what already waits in its sockets, so that a stalled process does not
   * take answers that have arrived for answers that are missing.
   */
  afterInput(callback: () => void): void;
  /** Calls back when what is happening now has been done, so that what is asked meanwhile can be asked together. */
  afterTurn(callback: () => void): void;
  /**
   * Calls back within a second after the machine was suspended, as long as any timer is scheduled: timers stand still
   * meanwhile.
   */
  onResume?(listener: () => void): void;
}

/** Milliseconds from one moment to another, never negative. */
export function elapsedBetween(from: Instant, to: Instant): number {
  return Math.max(to.monotonic - from.monotonic, to.wall - from.wall, 0);
}

/** Milliseconds since a moment. */
export function elapsedSince(clock: Clock, from: Instant): number {
  return elapsedBetween(from, clock.read());
}

/** No timer of Node sleeps longer than this, in milliseconds. */
const LONGEST_SLEEP = 1_000;
/** A wall clock that is corrected gently moves less than this within a second, in milliseconds. */
const NOTICEABLE_SLEEP = 5;

/** The clocks and timers of this process. All timers share one of Node's. */
export class SystemClock implements Clock {
  private readonly timers = new TimerQueue((keepsAlive) => this.keepAlive(keepsAlive));
  private handle: NodeJS.Timeout | undefined;
  /** When the handle fires. */
  private armedFor = Infinity;
  private readonly listeners: (() => void)[] = [];
  /** How far the wall clock was ahead of the monotonic one. */
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
    // Timers run before the poll phase and immediates after it: two turns guarantee one full read in between,
    // whichever phase we are called from.
    setImmediate(() => setImmediate(callback));
  }

  afterTurn(callback: () => void): void {
    setImmediate(callback);
  }

  private arm(due: number, now: number): void {
    clearTimeout(this.handle);
    this.armedFor = due;
    // Node's timers stand still while the machine is suspended: look at the clocks every second.
    this.handle = setTimeout(() => this.fire(), Math.min(Math.ceil(due - now), LONGEST_SLEEP));
    if (!this.timers.keepsAlive) this.handle.unref();
  }

  private fire(): void {
    this.armedFor = Infinity;
    this.handle = undefined;
    try {
      // Node counts from the beginning of a turn of the event loop, so a timer of its can be early.
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

/** With some slack, timers gather at multiples of a power of two: what is due at the same time can be done together. */
function dueAt(moment: number, slack: number): number {
  const grid = slack < 2 ? 1 : 2 ** Math.floor(Math.log2(slack));
  return grid === 1 ? Math.ceil(moment) : Math.floor(moment / grid) * grid;
}
