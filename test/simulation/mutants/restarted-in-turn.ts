import { Chance } from '../engine/chance.js';
import type { Operation, Schedule } from '../schedule.js';

const TTL = 1_000;
const [A, B, C] = [0, 1, 2];
const [WITNESS, NEW] = [0, 1];
/** When the masters that were in use are connected, in milliseconds. */
const CONNECTED = 200;
const LAST_RESTART = 3_000;

/**
 * A process sets the state of a lock. All masters are restarted without their data, one after the other, while it lives, and
 * a new process reads the state.
 */
export function restartedInTurn(seed: number): Schedule {
  const chance = new Chance(seed);
  const every = chance.whole(0, 1_000);
  return {
    seed,
    options: { ttl: TTL, maxTtl: TTL, wait: 1_000 },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [
      { rate: 1, offset: 0, startsAt: 0 },
      { rate: 1, offset: 0, startsAt: LAST_RESTART - chance.whole(0, 2_000) },
    ],
    operations: [operation(WITNESS, CONNECTED, 'set'), operation(NEW, LAST_RESTART + 500, 'get')],
    faults: [C, B, A].map((server) => ({
      ...{ kind: 'crash', at: LAST_RESTART - every * server, server, down: chance.whole(10, 300) },
      ...{ data: 'lost', lag: 1 },
    })),
    latency: 0.5,
  };
}

function operation(process: number, at: number, step: 'get' | 'set'): Operation {
  return {
    ...{ at, process, wait: 8_000, resources: ['a'], ttl: TTL, extend: true, minHold: 0, work: 300 },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined, state: { at: 0, steps: [step], pause: 0 } },
  };
}
