import { Chance } from '../engine/chance.js';
import type { Operation, Schedule } from '../schedule.js';

const TTL = 3_000;
const [A, B, C] = [0, 1, 2];
const [HOLDER, RIVAL] = [0, 1];
/** Processes are connected to masters that are in use by then, in milliseconds. */
const CONNECTED = 300;

/**
 * The holder has its lock on A and B. A comes back with a copy from before it, in which the marker of its former run is, and
 * cannot write another marker for a moment: it answers the first call with an error.
 */
export function restartedWithoutMemory(seed: number): Schedule {
  const chance = new Chance(seed);
  const soon = (): number => chance.whole(0, 50);
  return {
    seed,
    options: { ttl: TTL, maxTtl: TTL, wait: 1_000 },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [HOLDER, RIVAL].map(() => ({ rate: 1, offset: 0, startsAt: 0 })),
    operations: [operation(HOLDER, CONNECTED, 0), operation(RIVAL, CONNECTED + 1_000 + soon(), 1_000)],
    faults: [
      { kind: 'partition', at: CONNECTED - 5, process: HOLDER, server: C, direction: 'both', lasts: 5_000 },
      { kind: 'crash', at: CONNECTED + 50 + soon(), server: A, down: 10, data: 'stale', lag: 200, full: 700 + soon() },
    ],
    latency: 0.5,
  };
}

function operation(process: number, at: number, wait: number): Operation {
  return {
    ...{ at, process, wait, resources: ['a'], ttl: TTL, extend: false, minHold: 0, work: 2_500 },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined },
  };
}
