import { type Clock, elapsedBetween, pause, type Timer } from '../core/clock.js';
import { duration } from '../core/display.js';
import { type JobSchedule, toleranceOf } from '../core/jobs/job-policy.js';
import type { ClockReading } from '../core/state/state-register.js';

interface ClockDeviation {
  readonly master: string;
  // In milliseconds; negative if the clock is behind.
  readonly ahead: number;
}

// In milliseconds: clocks that are kept in time differ by less, also if an answer was read late.
const NOTICEABLE_DEVIATION = 5_000;

// The time of this process, and the time of the masters as far as they have shown it. In milliseconds since the epoch.
export class JobClock {
  // What each master showed last. The clock of one that does not answer goes on, as far as this process knows.
  private readonly known = new Map<string, ClockReading>();
  private readonly listeners = new Set<() => void>();

  constructor(private readonly clock: Clock) {
    clock.onResume?.(() => this.announce());
  }

  get wall(): number {
    return this.clock.read().wall;
  }

  // The median of the clocks of all masters that have ever answered; the wall clock until one has. Of an even number,
  // the two in the middle bound the wall clock: which of two clocks is wrong, a third one has to say.
  // Protocol 14.2.
  get masters(): number {
    return this.medianOf(this.times.map(({ time }) => time));
  }

  // From what the masters showed when the lock was taken, the monotonic clock alone goes on. A wall clock that was set
  // meanwhile is no time that passed, and a suspension beyond the ttl ends the lock.
  get mastersUnderLock(): number {
    const now = this.clock.read();
    return this.medianOf([...this.known.values()].map(({ time, at }) => time + now.monotonic - at.monotonic));
  }

  get deviations(): readonly ClockDeviation[] {
    const { times } = this;
    const median = this.medianOf(times.map(({ time }) => time));
    return times
      .map(({ master, time }) => ({ master, ahead: time - median }))
      .filter(({ ahead }) => Math.abs(ahead) >= NOTICEABLE_DEVIATION);
  }

  // The masters that do not answer are taken to go on as they did.
  synchronize(clocks: readonly ClockReading[]): void {
    for (const clock of clocks) this.known.set(clock.master, clock); // @mutant clocks-of-silent-masters-go-on
    this.announce();
  }

  // After changes of the clocks that timers cannot foresee.
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  schedule(delay: number, callback: () => void): Timer {
    return this.clock.schedule(delay, callback);
  }

  pause(delay: number, signal: AbortSignal): Promise<void> {
    return pause(this.clock, delay, signal);
  }

  private get times(): readonly { readonly master: string; readonly time: number }[] {
    const now = this.clock.read();
    return [...this.known.values()].map(({ master, time, at }) => ({ master, time: time + elapsedBetween(at, now) }));
  }

  private medianOf(times: readonly number[]): number {
    const sorted = times.toSorted((one, other) => one - other);
    const { wall } = this;
    const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? wall;
    const upper = sorted[Math.floor(sorted.length / 2)] ?? wall;
    return Math.min(Math.max(wall, lower), upper); // @mutant two-clocks-bound-the-own
  }

  private announce(): void {
    for (const listener of this.listeners) listener();
  }
}

export function describeDeviation({ master, ahead }: ClockDeviation): string {
  return `the clock of ${master} is ${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} the others`;
}

// In milliseconds: a timer that runs for longer misses corrections of the wall clock.
const LONGEST_SLEEP = 60_000;

interface TickListener {
  due(tick: number): void;
  // The tick was noticed too late to count as due.
  missed(tick: number, reason: 'late' | 'superseded'): void;
}

// Announces each nominal tick when the wall clock of this process reaches it, unless the clocks of the masters are so
// far behind that it could not start. Timers are set for nominal times, so that delays do not add up.
export class Ticker {
  private upcoming = Infinity;
  private announced: number | undefined;
  private timer: Timer | undefined;
  private unsubscribe: (() => void) | undefined;

  constructor(
    private readonly schedule: JobSchedule,
    private readonly clock: JobClock,
    private readonly listener: TickListener,
  ) {}

  start(): void {
    this.unsubscribe = this.clock.onChange(() => this.arm());
    this.arm();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.unsubscribe?.();
    this.unsubscribe = undefined;
  }

  private arm(): void {
    if (!this.unsubscribe) return;
    this.timer?.cancel();
    this.turnBack();
    const delay = this.upcoming - this.nowFor(this.upcoming);
    this.timer = this.clock.schedule(Math.min(Math.max(delay, 0), LONGEST_SLEEP), () => this.fire());
  }

  // A wall clock may have reached ticks too early: it was set back, or the masters have shown that it is ahead. Ticks
  // that were announced in time are not repeated.
  private turnBack(): void {
    const now = Math.min(this.clock.wall, this.clock.masters);
    const { announced } = this;
    if (announced !== undefined && announced - toleranceOf(this.schedule, announced) > now) this.announced = undefined;
    this.upcoming = Math.min(this.upcoming, this.schedule.next(Math.max(now, this.announced ?? now)));
  }

  // A clock that is ahead of the masters gains nothing.
  private nowFor(tick: number): number {
    return Math.min(this.clock.wall, this.clock.masters + toleranceOf(this.schedule, tick)); // @mutant clock-of-the-masters-counts
  }

  private fire(): void {
    const now = this.nowFor(this.upcoming);
    if (now >= this.upcoming) this.announce(now);
    this.arm();
  }

  private announce(now: number): void {
    const first = this.upcoming;
    const newest = this.schedule.last(now);
    this.announced = newest;
    this.upcoming = this.schedule.next(newest);
    if (newest > first) this.listener.missed(first, 'superseded');
    if (now - newest > toleranceOf(this.schedule, newest)) this.listener.missed(newest, 'late');
    else this.listener.due(newest); // @mutant tick-is-its-nominal-time
  }
}
