import type { Clock, Timer } from '../index.js';
import { type JobSchedule, toleranceOf } from './job-policy.js';

// In milliseconds: a timer that runs for longer misses corrections of the wall clock.
const LONGEST_SLEEP = 60_000;

interface TickListener {
  due(tick: number): void;
  // The tick was noticed too late to count as due.
  missed(tick: number, reason: 'late' | 'superseded'): void;
}

// Announces each nominal tick when the wall clock of this process reaches it. Timers are set for nominal times, so that
// delays do not add up.
// Protocol 12.2
export class Ticker {
  private upcoming = Infinity;
  private announced: number | undefined;
  private timer: Timer | undefined;
  private isStarted = false;

  constructor(
    private readonly schedule: JobSchedule,
    private readonly clock: Clock,
    private readonly listener: TickListener,
  ) {}

  start(): void {
    this.isStarted = true;
    this.clock.onResume?.(() => this.arm());
    this.arm();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.isStarted = false;
  }

  private arm(): void {
    if (!this.isStarted) return;
    this.timer?.cancel();
    const now = this.clock.read().wall;
    this.turnBack(now);
    this.timer = this.clock.schedule(Math.min(Math.max(this.upcoming - now, 0), LONGEST_SLEEP), () => this.fire());
  }

  // The wall clock may have reached ticks too early, if it was set back since. Ticks that were announced in time are not
  // repeated.
  private turnBack(now: number): void {
    const { announced } = this;
    if (announced !== undefined && announced - toleranceOf(this.schedule, announced) > now) this.announced = undefined;
    this.upcoming = Math.min(this.upcoming, this.schedule.next(Math.max(now, this.announced ?? now)));
  }

  private fire(): void {
    const now = this.clock.read().wall;
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
