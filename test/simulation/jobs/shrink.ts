import { play } from './play.js';
import type { JobsPlan } from './plan.js';
import type { JobProperty } from './violation.js';

/** Removes the faults without which the plan still breaks the property, and instances that never matter. */
export async function shrink(plan: JobsPlan, property: JobProperty | undefined): Promise<JobsPlan> {
  const fails = async (candidate: JobsPlan): Promise<boolean> => (await play(candidate)).property === property;
  let smallest = plan;
  for (let before; before !== smallest;) {
    before = smallest;
    for (const part of ['faults', 'instances'] as const) {
      for (
        let index = smallest[part].length - 1;
        index >= 0 && smallest[part].length > (part === 'faults' ? 0 : 1);
        index--
      ) {
        const candidate = { ...smallest, [part]: smallest[part].toSpliced(index, 1) };
        if (await fails(candidate)) smallest = candidate;
      }
    }
  }
  return smallest;
}
