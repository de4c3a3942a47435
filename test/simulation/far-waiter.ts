import { Chance } from './engine/chance.js';
import type { Operation, Schedule } from './schedule.js';

const TTL = 4_000;
const [FAR, NEAR, CROWD] = [0, 1, 2];
const MASTERS = [0, 1, 2];
/** Processes are connected to masters that are in use by then, in milliseconds. */
const CONNECTED = 300;
/** How long near processes want the lock, in milliseconds, and how often each. */
const [BUSY_FOR, EVERY] = [16_000, 40];
/** In milliseconds, without the travel of messages. */
const HOLD = 25;

/**
 * One process has a round trip of up to 600 ms, and two have none. One of those waits for the lock again and again, the other
 * one only tries.
 */
export function farWaiter(seed: number): Schedule {
  const chance = new Chance(seed);
  const way = chance.pick([20, 80, 150, 290]);
  return {
    seed,
    options: { ttl: TTL, maxTtl: TTL, masterTimeout: 1_000, wait: 0 },
    servers: MASTERS.map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [FAR, NEAR, CROWD].map(() => ({ rate: 1, offset: 0, startsAt: 0 })),
    operations: [
      ...[500, 6_000, 10_000].map((after) => operation(FAR, CONNECTED + after, 20_000)),
      ...Array.from({ length: BUSY_FOR / EVERY }, (_, index) => [
        operation(NEAR, CONNECTED + index * EVERY, 20_000),
        operation(CROWD, CONNECTED + index * EVERY + chance.whole(0, EVERY), 0),
      ]).flat(),
    ],
    faults: MASTERS.map((server) => ({
      ...{ kind: 'slow', at: CONNECTED, process: FAR, server, lasts: 60_000 },
      ...{ least: way, latency: way + 10 },
    })),
    latency: 0.5,
  };
}

function operation(process: number, at: number, wait: number): Operation {
  return {
    ...{ at, process, wait, resources: ['a'], ttl: TTL, extend: false, minHold: 0, work: HOLD },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined },
  };
}
