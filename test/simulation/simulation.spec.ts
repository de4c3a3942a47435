// A short form of `npm run simulate`: the real library in virtual time, with every kind of fault.
import { describe, expect, it } from '@jest/globals';
import { shareOf } from '../support/share.js';
import { EVERYTHING, FAULTS, generate, generateAny } from './generator.js';
import { RARE_STATES } from './properties/sometimes.js';
import { play } from './run.js';
import type { FaultKind, Schedule } from './schedule.js';
import { show } from './show.js';

const SCHEDULES = shareOf(300);
/** The whole suite also runs on slow machines. */
const PATIENCE = 120_000;

async function traceOf(seed: number): Promise<string[]> {
  const lines: string[] = [];
  await show(generateAny(seed), { shrink: false, command: 'npm run simulate --' }, (line) => lines.push(line));
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
      // Every kind of fault happens; a detour takes the place of every other twin.
      expect(FAULTS.filter((kind) => !happened.has(kind))).toEqual([]);
      expect([...reached]).toEqual(expect.arrayContaining(['an extension healed a master', 'a quarantine ended']));
      for (const state of reached) expect(RARE_STATES).toContain(state);
    },
    PATIENCE,
  );

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

  it('reports which assumption a run has broken', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [false], faults: [] });
    const crash = { kind: 'crash', at: 300, server: 0, down: 100, data: 'lost', lag: 1 } as const;
    const broken: Schedule = { ...schedule, faults: [crash] };
    expect((await play(broken)).broken).toContain('a master lost data, and there is no restart guard');
  });

  it('reports that restoring the memory of a master from a snapshot breaks an assumption', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], drifts: [0], faults: [] });
    for (const kind of ['clone', 'rollback'] as const) {
      const { broken } = await play({ ...schedule, faults: [{ kind, at: 3_400, server: 0, lag: 100 }] });
      expect(broken).toContain('the memory of a master was set back to a snapshot');
    }
  });

  it('counts wrong clocks of one client against that client alone', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], drifts: [0], faults: [] });
    const lag = { kind: 'clientLag', at: 3_400, process: 0, lasts: 50 } as const;
    const { broken, ailments } = await play({ ...schedule, faults: [lag] });
    expect(broken).toEqual([]);
    expect(ailments).toEqual(['the clocks of a client stood still']);
  });

  it('does not expect a holder that is cut off from all masters to object when they lose their data', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], drifts: [0], rolling: 0, faults: [] });
    const loss = { kind: 'loseAll', at: 3_500, within: 10, down: 10 } as const;
    const pauseOf = (lasts: number) => ({ kind: 'pause', at: 3_400, process: 0, lasts }) as const;
    const brokenBy = async (lasts: number) => (await play({ ...schedule, faults: [loss, pauseOf(lasts)] })).broken;
    expect(await brokenBy(2_500)).toEqual(['a holder was cut off from all masters when a majority lost its data']);
    expect(await brokenBy(100)).toEqual([]);
  });

  it('knows when a process is identifying a server', async () => {
    const schedule = generate(3, { ...EVERYTHING, masters: [3], guard: [true], faults: [] });
    const start = Math.min(...schedule.processes.map(({ startsAt }) => startsAt));
    const brokenAt = async (at: number): Promise<boolean> => {
      const promotion = { kind: 'promote', at, server: 0, lag: 1, connections: 'kept' } as const;
      const { broken } = await play({ ...schedule, faults: [promotion] });
      return broken.some((assumption) => assumption.startsWith('a server was replaced while it was recognized'));
    };
    // A handshake takes several round trips, and comes first.
    const during = await Promise.all([0.5, 1, 1.5, 2, 2.5, 3].map((delay) => brokenAt(start + delay)));
    expect(during).toContain(true);
    expect(await brokenAt(start + 100)).toBe(false);
  });
});
