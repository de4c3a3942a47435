import { Chance } from '../engine/chance.js';
import type { Fault, Operation, Schedule } from '../schedule.js';

const TTL = 20_000;
const [A, B, C] = [0, 1, 2];
const HOLDER = 0;
/** When the holder has its lock, and stands still. */
const STANDS_STILL = 4_500;
const LASTS = 8_000;

/**
 * A holder stands still, and loses all connections. It meets one master and loses it, then another one, and then a quorum of
 * them: that quorum shows the standstill if what each of them showed alone is not forgotten.
 */
export function standstillWithoutQuorum(seed: number): Schedule {
  const chance = new Chance(seed);
  const resumes = STANDS_STILL + LASTS;
  const meetsSecond = resumes + chance.whole(1_500, 2_500);
  const meetsQuorum = meetsSecond + chance.whole(1_500, 2_500);
  return {
    seed,
    options: { ttl: TTL, maxTtl: TTL, wait: 1_000 },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [{ rate: 1, offset: 0, startsAt: 0 }],
    operations: [HELD],
    faults: [
      { kind: 'clientLag', at: STANDS_STILL, process: HOLDER, lasts: LASTS, breaks: true },
      ...away(A, meetsSecond - 500, meetsQuorum),
      ...away(B, STANDS_STILL, meetsSecond),
      ...away(C, STANDS_STILL, 60_000),
    ],
    latency: 0.5,
  };
}

/** Long enough to see when the holder learns that its lock has ended. */
const HELD: Operation = {
  ...{ at: STANDS_STILL - 500, process: HOLDER, wait: 0, resources: ['a'], ttl: TTL, extend: false, minHold: 0 },
  ...{ work: 30_000, tokenAt: undefined, newTtl: undefined, abortAfter: undefined },
};

/** Closes a connection, and prevents a new one until then. */
function away(server: number, from: number, until: number): readonly Fault[] {
  return [
    { kind: 'cut', at: from, process: HOLDER, server, cut: 'now' },
    { kind: 'partition', at: from + 1, process: HOLDER, server, lasts: until - from, direction: 'both' },
  ];
}
