import type { Fault, Operation, Schedule, StatePlan } from '../schedule.js';

const [A, B, C] = [0, 1, 2];
const [FIRST, SECOND] = [0, 1];
/** Processes are connected to masters that are in use by then, in milliseconds. */
const CONNECTED = 300;

/** A value that a master has missed, and that another one loses as it comes back with an older copy of its data. */
export function missedValue(seed: number): Schedule {
  return schedule(seed, 1_000, {
    operations: [
      { process: FIRST, at: CONNECTED, work: 50, state: using(0, ['set'], 0) },
      { process: FIRST, at: CONNECTED + 200, work: 50, state: using(0, ['set'], 0) },
      { process: SECOND, at: CONNECTED + 3_000, wait: 2_000, work: 100, state: using(0, ['get'], 0) },
    ],
    faults: [
      cutOff(FIRST, B, CONNECTED + 150, 300),
      // What was sent meanwhile does not arrive afterwards.
      { kind: 'cut', at: CONNECTED + 400, process: FIRST, server: B, cut: 'now' },
      { kind: 'crash', at: CONNECTED + 500, server: A, down: 50, data: 'stale', lag: 350 },
      cutOff(SECOND, C, CONNECTED + 2_900, 2_000),
    ],
  });
}

interface Course {
  readonly operations: readonly (Pick<Operation, 'process' | 'at' | 'work'> & Partial<Operation>)[];
  readonly faults: readonly Fault[];
}

function schedule(seed: number, ttl: number, { operations, faults }: Course): Schedule {
  return {
    ...{ seed, faults, latency: 0.5, options: { ttl, maxTtl: ttl, masterTimeout: ttl / 4, wait: 0 } },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [FIRST, SECOND].map(() => ({ rate: 1, offset: 0, startsAt: 0 })),
    operations: operations.map((operation) => ({
      ...{ resources: ['a'], ttl, wait: 0, extend: false, minHold: 0 },
      ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined, ...operation },
    })),
  };
}

function using(at: number, steps: StatePlan['steps'], pause: number): StatePlan {
  return { at, steps, pause };
}

function cutOff(process: number, server: number, at: number, lasts: number): Fault {
  return { kind: 'partition', at, process, server, direction: 'both', lasts };
}
