import type { Fault, Operation, Schedule, StatePlan } from '../schedule.js';

const [A, B, C] = [0, 1, 2];
const [FIRST, SECOND] = [0, 1];
/** Processes are connected to masters that are in use by then, in milliseconds. */
const CONNECTED = 300;
/** When a lock of four seconds is extended that was acquired then. */
const EXTENDS = CONNECTED + 1_330;

/**
 * A master loses the promise that it gave to the second holder, and knows only the first one by then: it would accept what
 * that one sets, which the second one has not read.
 */
export function lostPromise(seed: number): Schedule {
  const ttl = 1_000;
  return schedule(seed, ttl, {
    operations: [
      { process: FIRST, at: CONNECTED, extend: true, work: 1_400, state: using(0, ['get', 'set'], 600) },
      { process: SECOND, at: CONNECTED + 20, work: 60, state: using(0, ['get'], 0) },
    ],
    faults: [
      ...[B, C].map((server) => evicted(server, CONNECTED + 10)),
      { kind: 'flush', at: CONNECTED + 40, server: B },
    ],
  });
}

/**
 * The first holder opens the state on A, which then loses the promise, and on B only after the second one, whose ballot is
 * smaller. The second holder meets A in quarantine: if A took what it sets, the first one would not read it, and replace it.
 */
export function openedInQuarantine(seed: number): Schedule {
  return schedule(seed, 4_000, {
    aheadBy: 5_000,
    operations: [
      { process: FIRST, at: CONNECTED, extend: true, work: 4_000, state: using(0.34, ['get', 'get'], 100) },
      {
        ...{ process: SECOND, at: EXTENDS - 120, work: 1_800, newTtl: 4_000 },
        ...{ state: using(0.13, ['get', 'set'], 750) },
      },
      // It notices the loss of A.
      { process: SECOND, at: EXTENDS + 60, resources: ['b'], work: 10 },
    ],
    faults: [
      ...[B, C].map((server) => evicted(server, EXTENDS - 130)),
      // The extension of the first holder and its opening arrive at B when the key of the second one is gone.
      { kind: 'late', at: EXTENDS - 80, process: FIRST, server: B, direction: 'out', lasts: 700 },
      { kind: 'flush', at: EXTENDS + 40, server: A },
      evicted(B, EXTENDS + 370),
      evicted(C, EXTENDS + 970),
    ],
  });
}

interface Course {
  readonly operations: readonly (Pick<Operation, 'process' | 'at' | 'work'> & Partial<Operation>)[];
  readonly faults: readonly Fault[];
  /** The first process draws larger ballots if its clock is ahead, in milliseconds. */
  readonly aheadBy?: number;
}

function schedule(seed: number, ttl: number, { operations, faults, aheadBy = 0 }: Course): Schedule {
  return {
    ...{ seed, faults, latency: 0.5, options: { ttl, maxTtl: ttl, masterTimeout: ttl / 4, wait: 0 } },
    servers: [A, B, C].map(() => ({ rate: 1, offset: 0, uptime: 100_000, isKnown: true })),
    processes: [aheadBy, 0].map((offset) => ({ rate: 1, offset, startsAt: 0 })),
    operations: operations.map((operation) => ({
      ...{ resources: ['a'], ttl, wait: 0, extend: false, minHold: 0 },
      ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined, ...operation },
    })),
  };
}

function using(at: number, steps: StatePlan['steps'], pause: number): StatePlan {
  return { at, steps, pause };
}

function evicted(server: number, at: number): Fault {
  return { kind: 'evict', at, server };
}
