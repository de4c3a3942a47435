import type { JobSchedule } from '../../../lib/core/jobs/job-schedule.interface.js';
import { CronSchedule } from '../../../lib/schedule/cron-schedule.js';
import { IntervalSchedule } from '../../../lib/schedule/interval-schedule.js';
import type { SchedulePlan } from './plan.js';

/** The ticks of a schedule that were asked for, because the search for a cron tick takes as long as a whole run. */
class RememberedSchedule implements JobSchedule {
  private readonly gaps: { readonly from: number; readonly to: number }[] = [];

  constructor(private readonly inner: JobSchedule) {}

  next(after: number): number {
    return this.gapAt(after).to;
  }

  last(until: number): number {
    return this.gapAt(until).from;
  }

  private gapAt(moment: number): { readonly from: number; readonly to: number } {
    const known = this.gaps.find(({ from, to }) => from <= moment && moment < to);
    if (known) return known;
    const from = this.inner.last(moment);
    const gap = { from, to: this.inner.next(from) };
    this.gaps.push(gap);
    return gap;
  }
}

const known = new Map<string, JobSchedule>();

/** The real schedule of a plan. */
export function scheduleOf(plan: SchedulePlan): JobSchedule {
  if (plan.kind === 'interval') return new IntervalSchedule(plan.period);
  const { expression, timeZone } = plan;
  const name = `${expression} ${timeZone}`;
  const schedule = known.get(name) ?? new RememberedSchedule(new CronSchedule(expression, timeZone));
  known.set(name, schedule);
  return schedule;
}
