// Processes that stand still between and within the turns of their event loop, near masters and far ones.
import { describe, expect, it } from '@jest/globals';
import { shareOf } from '../support/share.js';
import { Chance } from './engine/chance.js';
import { EVERYTHING, generate, type Profile } from './generator.js';
import { play } from './run.js';
import type { Fault, Schedule } from './schedule.js';

const SCHEDULES = shareOf(300);
const PATIENCE = 300_000;

const BUSY: Profile = {
  ...EVERYTHING,
  ...{ faults: [], drifts: [200e-6], guard: [undefined], fresh: 0, known: 1, rolling: 0, ttls: [10_000] },
  ...{ blocking: 0, crowds: 0.3 },
};
/** When the first pause begins: all are connected, in milliseconds. */
const FROM = 3_000;
const FOR = 6_000;
/** Of a message, in milliseconds: a round trip takes up to twice as long. */
const LATENCIES = [0.5, 3, 25, 100, 300];

/** The milliseconds for which a process stands still at a time. */
const block = (chance: Chance): number => Math.round(chance.spread(5, 500));

function busy(seed: number): Schedule {
  const schedule = generate(seed, BUSY);
  const chance = new Chance(seed, 20);
  const latency = chance.pick(LATENCIES);
  const faults = schedule.processes.flatMap((_, process) => {
    const pauses: Fault[] = [];
    for (let at = FROM; at < FROM + FOR;) {
      const lasts = block(chance);
      pauses.push({ kind: 'pause', at, process, lasts });
      at += lasts + chance.whole(5, 300);
    }
    return pauses;
  });
  const operations = schedule.operations.map((operation) => ({
    ...operation,
    at: FROM + chance.whole(0, FOR),
    ttl: 10_000,
    newTtl: undefined,
    wait: chance.pick([0, 0, 2_000, 5_000]),
    ...(chance.happens(0.5) && {
      blocks: { when: chance.pick(['asked', 'held', 'released'] as const), lasts: block(chance) },
    }),
  }));
  const processes = schedule.processes.map((process) => ({ ...process, startsAt: 0 }));
  const options = { ...schedule.options, ...(latency > 100 && { masterTimeout: 2_500 }) };
  return { ...schedule, processes, operations, faults, latency, options };
}

// Protocol 4.1 and 4.7
describe('A busy process in the simulation', () => {
  it(
    'fails no call for its own pauses, and finds fault with no master',
    async () => {
      let grants = 0;
      for (let seed = 1; seed <= SCHEDULES; seed++) {
        const { property, message, reached, grants: granted } = await play(busy(seed));
        expect({ seed, property, message }).toEqual({ seed, property: undefined, message: undefined });
        expect({ seed, reached }).not.toMatchObject({ reached: expect.arrayContaining(['a master fell silent']) });
        expect({ seed, reached }).not.toMatchObject({
          reached: expect.arrayContaining(['a half-open connection was replaced']),
        });
        grants += granted;
      }
      expect(grants).toBeGreaterThan(SCHEDULES);
    },
    PATIENCE,
  );
});
