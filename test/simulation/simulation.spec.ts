// A short form of `npm run simulate`: the real library in virtual time, with every kind of fault.
import { describe, expect, it } from '@jest/globals';
import { shareOf } from '../support/share.js';
import { EVERYTHING, FAULTS, generate, generateAny } from './generator.js';
import { RARE_STATES } from './properties/sometimes.js';
import { play } from './run.js';
import type { FaultKind } from './schedule.js';

const SCHEDULES = shareOf(400);
/** The whole suite also runs on slow machines. */
const PATIENCE = 300_000;

async function traceOf(seed: number): Promise<string[]> {
  const lines: string[] = [];
  await play(generateAny(seed), { log: (line) => lines.push(line) });
  return lines;
}

describe('The library on simulated masters', () => {
  it(
    'keeps its guarantees in random schedules, and counts the rare states that it reaches',
    async () => {
      let [sound, grants] = [0, 0];
      const happened = new Set<FaultKind>();
      const reached = new Set<string>();
      for (let seed = 1; seed <= SCHEDULES; seed++) {
        const result = await play(generateAny(seed));
        const { property, message } = result;
        expect({ seed, property, message }).toEqual({ seed, property: undefined, message: undefined });
        sound += result.broken.length === 0 ? 1 : 0;
        grants += result.grants;
        for (const kind of result.faults) happened.add(kind);
        for (const state of result.reached) reached.add(state);
      }
      // Most of the runs break no assumption, so they can show mutual exclusion, and have enough locks to show it.
      expect(sound).toBeGreaterThan(SCHEDULES / 2);
      expect(grants).toBeGreaterThan(2 * SCHEDULES);
      // Every kind of fault happens.
      expect(FAULTS.filter((kind) => !happened.has(kind))).toEqual([]);
      expect([...reached]).toEqual(expect.arrayContaining(['an extension healed a master', 'a quarantine ended']));
      for (const state of reached) expect(RARE_STATES).toContain(state);
    },
    PATIENCE,
  );

  // A fast master votes again, by its own clock, before the whole ttl has passed in true time.
  it('grants when no lock can be relied on any more that a master has lost', async () => {
    expect(await play(generateAny(4_082_061))).toMatchObject({ property: undefined, broken: [] });
  });

  it('replays bit for bit from the seed', async () => {
    const once = await traceOf(7);
    expect(await traceOf(7)).toEqual(once);
    expect(once.length).toBeGreaterThan(10);
    expect(await traceOf(8)).not.toEqual(once);
  });

  it('takes the same course whether or not a trace is recorded', async () => {
    const silent = await play(generate(9));
    const traced = await play(generate(9), { log: () => undefined });
    expect(traced).toEqual(silent);
  });

  it('demands mutual exclusion although clocks run at rates that differ by almost a hundredth', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], drifts: [0], faults: [] });
    const apart = (rate: number) => ({ ...schedule, servers: schedule.servers.map((server) => ({ ...server, rate })) });
    expect((await play(apart(1.009))).broken).toEqual([]);
    expect((await play(apart(1.011))).broken).toEqual(['clocks run at rates that differ by more than driftFactor']);
  });

  it('counts wrong clocks of one client against that client alone', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], drifts: [0], faults: [] });
    const lag = { kind: 'stun', at: 3_400, process: 0, lasts: 50 } as const;
    const { broken, ailments } = await play({ ...schedule, faults: [lag] });
    expect(broken).toEqual([]);
    expect(ailments).toEqual(['the clocks of a client stood still']);
  });
});
