// Schedules that notice a mutant, and that random ones would need too long to find.
import { A, apart, B, C, cut, lock, MASTERS, schedule } from '../courses.js';
import { Chance } from '../engine/chance.js';
import type { Schedule, StatePlan } from '../schedule.js';

/** Processes are connected to masters that are in use by then, in milliseconds. */
const CONNECTED = 300;

/**
 * The known counter-example to agreeing on a token without adopting larger answers (see
 * test/unit/fencing/fencing-counterexamples.spec.ts): six events in one order. Their exact times are still random.
 */
export function duplicateToken(seed: number): Schedule {
  const [fast, first, second] = [0, 1, 2];
  const chance = new Chance(seed);
  const soon = (): number => Math.round(chance.fraction() * 3);
  const begins = 5_600 + soon();
  return schedule(seed, {
    options: { ttl: 10_000, maxTtl: 10_000, wait: 1_000 },
    processes: [{}, {}, {}],
    operations: [
      lock(fast, 5_160, { work: 10, tokenAt: 0 }),
      // The first holder receives a number from A only, and needs another round.
      lock(first, begins, { work: 1_000, tokenAt: 0.01 }),
      lock(second, begins + 14 + soon(), { work: 20, tokenAt: 0 }),
    ],
    faults: [
      // The counters are ahead of the clocks after the first lock, and increase one by one.
      ...MASTERS.map((server) => ({ kind: 'serverJump', at: 5_300, server, by: -30_000 }) as const),
      // B misses the first lock,
      cut(fast, B, 5_158),
      // the first holder is late at C,
      { kind: 'partition', at: begins - 5, process: first, server: C, direction: 'out', lasts: 90 },
      // and its lock is forgotten by B.
      { kind: 'evict', at: begins + 5 + soon(), server: B },
    ],
  });
}

/** A value that a master has missed, and that another one loses as it comes back with an older copy of its data. */
export function missedValue(seed: number): Schedule {
  const [first, second] = [0, 1];
  const ttl = 1_000;
  const using = (steps: StatePlan['steps']) => ({ ttl, state: { at: 0, steps, pause: 0 } });
  return schedule(seed, {
    options: { ttl, maxTtl: ttl, masterTimeout: ttl / 4, wait: 0 },
    processes: [{}, {}],
    operations: [
      lock(first, CONNECTED, { ...using(['set']), work: 50 }),
      lock(first, CONNECTED + 200, { ...using(['set']), work: 50 }),
      lock(second, CONNECTED + 3_000, { ...using(['get']), wait: 2_000, work: 100 }),
    ],
    faults: [
      apart(first, B, CONNECTED + 150, 300),
      // What was sent meanwhile does not arrive afterwards.
      cut(first, B, CONNECTED + 400),
      { kind: 'crash', at: CONNECTED + 500, server: A, down: 50, data: 'stale', lag: 350 },
      apart(second, C, CONNECTED + 2_900, 2_000),
    ],
  });
}

/**
 * The holder has its lock on A and B. A comes back with a copy from before it, in which the marker of its former run is, and
 * cannot write another marker for a moment: it answers the first call with an error.
 */
export function restartedWithoutMemory(seed: number): Schedule {
  const [holder, rival] = [0, 1];
  const chance = new Chance(seed);
  const soon = (): number => chance.whole(0, 50);
  const how = { ttl: 3_000, work: 2_500 };
  return schedule(seed, {
    options: { ttl: 3_000, maxTtl: 3_000, wait: 1_000 },
    processes: [{}, {}],
    operations: [lock(holder, CONNECTED, how), lock(rival, CONNECTED + 1_000 + soon(), { ...how, wait: 1_000 })],
    faults: [
      apart(holder, C, CONNECTED - 5, 5_000),
      { kind: 'crash', at: CONNECTED + 50 + soon(), server: A, down: 10, data: 'stale', lag: 200, full: 700 + soon() },
    ],
  });
}
