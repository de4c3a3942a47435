import { Chance } from '../engine/chance.js';
import type { Operation, Schedule } from '../schedule.js';

const LONG = 10_000;
const [A, B, C] = [0, 1, 2];
const [FAST, FIRST, SECOND] = [0, 1, 2];

/**
 * The known counter-example to agreeing on a token without adopting larger answers. Random schedules would need too long
 * to find it, because six events must happen in one order. Their exact times are still random.
 */
export function duplicateToken(seed: number): Schedule {
  const chance = new Chance(seed);
  const soon = (): number => Math.round(chance.fraction() * 3);
  const begins = 5_600 + soon();
  return {
    seed,
    options: { ttl: LONG, maxTtl: LONG, wait: 1_000 },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [FAST, FIRST, SECOND].map(() => ({ rate: 1, offset: 0, startsAt: 0 })),
    operations: [
      operation(FAST, 5_160, { work: 10, tokenAt: 0 }),
      // The first holder receives a number from A only, and needs another round.
      operation(FIRST, begins, { work: 1_000, tokenAt: 0.01 }),
      operation(SECOND, begins + 14 + soon(), { work: 20, tokenAt: 0 }),
    ],
    faults: [
      // The counters are ahead of the clocks after the first lock, and increase one by one.
      ...[A, B, C].map((server) => ({ kind: 'serverJump', at: 5_300, server, by: -30_000 }) as const),
      // B misses the first lock,
      { kind: 'cut', at: 5_158, process: FAST, server: B, cut: 'now' },
      // the first holder is late at C,
      { kind: 'partition', at: begins - 5, process: FIRST, server: C, direction: 'out', lasts: 90 },
      // and its lock is forgotten by B.
      { kind: 'evict', at: begins + 5 + soon(), server: B },
    ],
    latency: 0.5,
  };
}

function operation(process: number, at: number, how: Pick<Operation, 'work' | 'tokenAt'>): Operation {
  return {
    ...{ at, process, resources: ['a'], ttl: LONG, wait: 0, extend: false, minHold: 0 },
    ...{ newTtl: undefined, abortAfter: undefined, ...how },
  };
}
