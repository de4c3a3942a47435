// Every fault that is built into the algorithm is noticed. A mutant that no longer fits its file is an error, too.
import { describe, expect, it } from '@jest/globals';
import { availableParallelism } from 'node:os';
import { play } from '../run.js';
import { MUTANTS } from './mutants.mjs';
import { PROFILES, scheduleFor } from './profiles.js';
import { runMutants } from './run-mutants.mjs';

/** As in `npm run simulate -- --mutants`: each of them within a minute. */
const PATIENCE = 90_000;

describe('A fault in the algorithm is noticed', () => {
  it.each(MUTANTS.map(({ name }) => name))(
    '%s',
    async (name) => {
      const workers = Math.min(2, availableParallelism());
      const [result] = await runMutants({ name, workers, seed: 1 }, () => undefined);
      expect({ name, killed: result?.property !== undefined }).toEqual({ name, killed: true });
      // It is the fault that was noticed, and not something in the schedule: without it, nothing is wrong.
      const { property, message } = await play(scheduleFor(name, result?.killer ?? 0));
      expect({ property, message }).toEqual({ property: undefined, message: undefined });
    },
    PATIENCE,
  );

  it('and each has schedules of its own', () => {
    expect(Object.keys(PROFILES).sort()).toEqual(MUTANTS.map(({ name }) => name).sort());
  });
});
