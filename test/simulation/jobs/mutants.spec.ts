// The properties notice every wrong variant of the rules for jobs, and not the schedules in which they do.
import { describe, expect, it } from '@jest/globals';
import { generate } from './generator.js';
import { JOBS, runMutants } from '../mutants/run-mutants.mjs';
import { play } from './play.js';

/** The whole suite also runs on slow machines. */
const PATIENCE = 240_000;

describe('A wrong rule for jobs', () => {
  it.each(JOBS.mutants.map(({ name }) => name))(
    'is noticed: %s',
    async (name) => {
      const [result] = await runMutants(JOBS, { name, workers: 1, seed: 1 }, () => undefined);
      expect({ name, noticed: result?.property !== undefined }).toEqual({ name, noticed: true });
      const { property, message } = await play(generate(result?.seed ?? 0));
      expect({ property, message }).toEqual({ property: undefined, message: undefined });
    },
    PATIENCE,
  );
});
