import type { JobSchedule } from '../core/jobs/job-schedule.interface.js';

/** Ticks at the multiples of a period since the Unix epoch, so that all instances have the same ones. */
export class IntervalSchedule implements JobSchedule {
  /** @param period milliseconds */
  constructor(private readonly period: number) {}

  next(after: number): number {
    return (Math.floor(after / this.period) + 1) * this.period;
  }

  last(until: number): number {
    return Math.floor(until / this.period) * this.period;
  }
}
