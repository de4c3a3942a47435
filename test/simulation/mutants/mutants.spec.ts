// The properties detect every fault that is built into the algorithm. A mutant that no longer fits its file is an
// error, too.
import { describe, expect, it } from '@jest/globals';
import { availableParallelism } from 'node:os';
import { play } from '../run.js';
import { scheduleFor } from './profiles.js';
import { LOCKS, runMutants } from './run-mutants.mjs';

/** As in `npm run simulate -- --mutants`, which allows each mutant three minutes. */
const PATIENCE = 240_000;

describe('A fault in the algorithm', () => {
  it.each(LOCKS.mutants.map(({ name }) => name))(
    'is detected: %s',
    async (name) => {
      const workers = Math.min(2, availableParallelism());
      const [result] = await runMutants(LOCKS, { name, workers, seed: 1 }, () => undefined);
      expect({ name, killed: result?.property !== undefined }).toEqual({ name, killed: true });
      // It runs: its lines still fit the code around them.
      expect(result?.message).not.toMatch(/is not (?:a function|defined|iterable)|Cannot (?:read|set) properties/);
      // The properties detect the fault and not the schedule: without the fault, the schedule breaks nothing.
      const { property, message } = await play(scheduleFor(name, result?.seed ?? 0));
      expect({ property, message }).toEqual({ property: undefined, message: undefined });
    },
    PATIENCE,
  );
});
