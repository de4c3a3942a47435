import { play, type RunOptions } from './run.js';
import type { Property } from './properties/violation.js';
import type { Schedule } from './schedule.js';

/** Limit on the number of schedules to try. */
const MAX_TRIES = 400;

/** Removes the faults and operations without which the schedule still fails. */
export async function shrink(schedule: Schedule, property: Property, options: RunOptions): Promise<Schedule> {
  let tries = 0;
  const fails = async (candidate: Schedule): Promise<boolean> => {
    tries++;
    return (await play(candidate, options)).property === property;
  };
  let smallest = schedule;
  for (let before; before !== smallest && tries < MAX_TRIES;) {
    before = smallest;
    for (const part of ['faults', 'operations'] as const) {
      for (let index = smallest[part].length - 1; index >= 0; index--) {
        const candidate = { ...smallest, [part]: smallest[part].toSpliced(index, 1) };
        if (candidate.operations.length > 0 && (await fails(candidate))) smallest = candidate;
      }
    }
  }
  return smallest;
}
