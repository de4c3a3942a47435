import type { JobSchedule } from '../../../lib/schedule/job-policy.js';
import { CronSchedule, IntervalSchedule } from '../../../lib/schedule/cron-schedule.js';
import type { SchedulePlan } from './plan.js';

export function scheduleOf(plan: SchedulePlan): JobSchedule {
  if (plan.kind === 'interval') return new IntervalSchedule(plan.period);
  return new CronSchedule(plan.expression, plan.timeZone);
}
