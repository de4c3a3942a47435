import type { Clock, Instant, Timer } from '../core/clock.js';
import { TimerQueue } from './timer-queue.js';

/** Captured at load time: under the fake timers of a test, a call would wait for a turn that never comes. */
const { setImmediate } = globalThis;
/** Captured, too, because the global `performance` is a getter, and each lock reads the clocks several times. */
const { setTimeout: ownTimeout, Date: OwnDate, performance: captured } = globalThis;
/** Longest delay of the Node timer, in milliseconds. Protocol 3.3. */
const LONGEST_SLEEP = 1_000;
/** Gradual corrections move a wall clock by less than this within a second, in milliseconds. */
const NOTICEABLE = 5;

/** The clocks and timers of this process. All timers share one Node timer. */
export class SystemClock implements Clock {
  private readonly timers = new TimerQueue((keepsAlive) => this.keepAlive(keepsAlive));
  private handle: NodeJS.Timeout | undefined;
  /** When `handle` fires. */
  private armedFor = Infinity;
  /** What armed it: fake timers of a test forget what they have not run when they end. */
  private armedBy = setTimeout;
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
    const now = monotonic();
    const due = dueAt(now + delay, slack);
    const timer = this.timers.add(due, callback);
    if (due < this.armedFor) this.arm(due, now);
    else if (this.armedBy !== setTimeout) this.arm(this.timers.nextDue ?? due, now);
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
    this.armedBy = setTimeout;
    // Node's timers stand still while the machine is suspended, so check the clocks every second.
    this.handle = setTimeout(() => this.fire(), Math.min(Math.ceil(due - now), LONGEST_SLEEP));
    if (!this.timers.keepsAlive) this.handle.unref();
  }

  private fire(): void {
    this.armedFor = Infinity;
    this.handle = undefined;
    try {
      // Node measures from the beginning of a turn of the event loop, so its timer can fire early.
      this.timers.run(monotonic());
      this.noticeResume();
    } finally {
      const next = this.timers.nextDue;
      if (next !== undefined && next < this.armedFor) this.arm(next, monotonic());
    }
  }

  private noticeResume(): void {
    const ahead = aheadOf(readClocks());
    const moved = Math.abs(ahead - this.ahead);
    this.ahead = ahead;
    if (moved > NOTICEABLE) for (const listener of this.listeners) listener();
  }

  private keepAlive(keepsAlive: boolean): void {
    if (keepsAlive) this.handle?.ref();
    else this.handle?.unref();
  }
}

function readClocks(): Instant {
  return { monotonic: monotonic(), wall: Date.now() };
}

/** Fake timers of a test bring a clock of their own, and may leave some of the globals real. */
function monotonic(): number {
  return (setTimeout === ownTimeout && Date === OwnDate ? captured : performance).now();
}

function aheadOf({ monotonic, wall }: Instant): number {
  return wall - monotonic;
}

/** With slack, due times are rounded down to multiples of a power of two, so that several timers coincide. */
function dueAt(moment: number, slack: number): number {
  if (slack < 2) return Math.ceil(moment);
  // The largest power of two within the slack.
  const grid = 2 ** (31 - Math.clz32(slack));
  return Math.floor(moment / grid) * grid;
}
