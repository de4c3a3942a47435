import { Chance } from '../engine/chance.js';
import type { Operation, Schedule } from '../schedule.js';

const LONG = 10_000;
/** New masters vote by then. */
const SETTLED = 3_400;
const [A, B, C] = [0, 1, 2];
const [HOLDER, RIVAL] = [0, 1];

/** All masters lose their data while a lock is held. Only contact by its holder keeps them from voting early. */
export function lostTogether(seed: number): Schedule {
  const chance = new Chance(seed);
  return {
    seed,
    options: { ttl: LONG, maxTtl: LONG, wait: 1_000 },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000 })),
    processes: [HOLDER, RIVAL].map(() => ({ rate: 1, offset: 0, startsAt: 0 })),
    operations: [
      operation(HOLDER, SETTLED + chance.whole(0, 20), 0),
      operation(RIVAL, SETTLED + 300 + chance.whole(0, 50), 8_000),
    ],
    faults: [{ kind: 'loseAll', at: SETTLED + 200, within: 20, down: 20 }],
    latency: 0.5,
  };
}

function operation(process: number, at: number, wait: number): Operation {
  return {
    ...{ at, process, wait, resources: ['a'], ttl: LONG, extend: false, minHold: 0, work: 9_000 },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined },
  };
}
