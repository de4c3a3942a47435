/** When a job is due. Moments are in milliseconds since the Unix epoch. */
export interface JobSchedule {
  /** The first nominal tick after a moment. */
  next(after: number): number;
  /** The last nominal tick at or before a moment. */
  last(until: number): number;
}

/** The clocks of two instances may differ by this much at most, in milliseconds, however long the period is. */
const MOST_TOLERANCE = 60_000;

/**
 * How much earlier than its nominal time a tick may start, in milliseconds: half the time since the tick before it, so
 * that neighbouring ticks are never confused, and at most a minute.
 */
export function toleranceOf(schedule: JobSchedule, tick: number): number {
  return Math.min((tick - schedule.last(tick - 1)) / 2, MOST_TOLERANCE);
}
