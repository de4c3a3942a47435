import { Chance } from './engine/chance.js';
import { lock, MASTERS, schedule } from './courses.js';
import type { Operation, Schedule } from './schedule.js';

const TTL = 4_000;
const [FAR, NEAR, CROWD] = [0, 1, 2];
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
  const asks = (process: number, after: number, wait: number): Operation =>
    lock(process, CONNECTED + after, { wait, ttl: TTL, work: HOLD });
  return schedule(seed, {
    options: { ttl: TTL, maxTtl: TTL, masterTimeout: 1_000, wait: 0 },
    processes: [{}, {}, {}],
    operations: [
      ...[500, 6_000, 10_000].map((after) => asks(FAR, after, 20_000)),
      ...Array.from({ length: BUSY_FOR / EVERY }, (_, index) => [
        asks(NEAR, index * EVERY, 20_000),
        asks(CROWD, index * EVERY + chance.whole(0, EVERY), 0),
      ]).flat(),
    ],
    faults: MASTERS.map((server) => ({
      ...{ kind: 'slow', at: CONNECTED, process: FAR, server, lasts: 60_000 },
      ...{ least: way, latency: way + 10 },
    })),
  });
}
