// A short form of `npm run simulate:jobs`: the real engine of scheduled jobs in virtual time.
import { describe, expect, it } from '@jest/globals';
import { shareOf } from '../../support/share.js';
import { generate } from './generator.js';
import { play } from './play.js';
import { RARE_STATES, type RareState } from './rare-states.js';

const SCHEDULES = shareOf(250);
/** The whole suite also runs on slow machines. */
const PATIENCE = 300_000;

async function traceOf(seed: number): Promise<string[]> {
  const lines: string[] = [];
  await play(generate(seed), (line) => lines.push(line));
  return lines;
}

describe('Scheduled jobs on simulated masters', () => {
  it(
    'keep their promises in random schedules',
    async () => {
      const reached = new Set<RareState>();
      let starts = 0;
      for (let seed = 1; seed <= SCHEDULES; seed++) {
        const result = await play(generate(seed));
        const { property, message } = result;
        expect({ seed, property, message }).toEqual({ seed, property: undefined, message: undefined });
        for (const state of result.reached) reached.add(state);
        starts += result.starts;
      }
      expect(starts).toBeGreaterThan(2 * SCHEDULES);
      expect(reached.size).toBeGreaterThan(RARE_STATES.length / 2);
    },
    PATIENCE,
  );

  it('replay bit for bit from the seed, with and without a trace', async () => {
    const once = await traceOf(7);
    expect(await traceOf(7)).toEqual(once);
    expect(once.length).toBeGreaterThan(10);
    expect(await traceOf(8)).not.toEqual(once);
    expect((await play(generate(7), () => undefined)).fingerprint).toBe((await play(generate(7))).fingerprint);
  });

  it('run again after a crash between the work and the record, and not after the record', async () => {
    const quiet = { ...generate(1), faults: [], policy: { recover: true, catchUp: false, overlap: 'skip' as const } };
    const crash = { kind: 'crash', instance: 'actor', what: 'machine', awayFor: Infinity } as const;
    const startsWith = async (point: 'has run' | 'releases the lock'): Promise<number> => {
      const faults = [{ when: { point, nth: 1, delay: 0 }, action: crash }];
      const { property, starts } = await play({ ...quiet, faults });
      expect(property).toBeUndefined();
      return starts;
    };
    const { starts } = await play(quiet);
    expect(await startsWith('has run')).toBe(starts + 1);
    expect(await startsWith('releases the lock')).toBe(starts);
  });
});
