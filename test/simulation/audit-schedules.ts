import type { RedlockOptions } from '../../lib/settings/options.js';
import { A, apart, B, C, type Course, cut, D, lock, MASTERS, schedule, SECONDS } from './courses.js';
import type { Fault, Operation, Schedule } from './schedule.js';

/** The process that holds the lock, one that asks for the same lock, and others. */
const [HOLDER, RIVAL, OTHER, LATER] = [0, 1, 2, 3];
/** Time after which all processes are connected, in milliseconds. */
const SETTLED = 3_400;

/** A schedule in which an earlier version broke a guarantee. */
interface AuditSchedule {
  /** What the library guarantees, as a full sentence after "it". */
  readonly name: string;
  readonly schedule: Schedule;
}

const ONE: RedlockOptions = { ttl: '1s', maxTtl: '1s' };
const LONGER: RedlockOptions = { ttl: '10s', maxTtl: '30s' };
const LONG: Partial<Operation> = { ttl: 30 * SECONDS, work: 29 * SECONDS };
const SHORT: Partial<Operation> = { resources: ['b'], work: 10 };

function several(count: number, first: number, every: number, how: Partial<Operation>, process: number): Operation[] {
  return Array.from({ length: count }, (_, index) => lock(process, first + index * every, how));
}

function away(process: number, server: number, at: number, lasts: number): readonly Fault[] {
  return [cut(process, server, at), apart(process, server, at + 1, lasts)];
}

function restartedEmpty(server: number, at: number): Fault {
  return { kind: 'crash', at, server, down: 100, data: 'lost', lag: 1 };
}

function flushed(server: number, at: number): Fault {
  return { kind: 'flush', at, server };
}

/** The holder has its lock on A and B only. Then a fault hits A, and the rival asks A and C. */
function twoBelievers(seed: number, ...faults: readonly Fault[]): Schedule {
  return schedule(seed, {
    processes: [{}, {}],
    // The first request of the rival lets it use the server before the fault.
    operations: [lock(HOLDER, SETTLED), lock(RIVAL, SETTLED + 50, SHORT), lock(RIVAL, SETTLED + 300, { work: 100 })],
    faults: [apart(HOLDER, C, SETTLED - 50, 6 * SECONDS), ...faults],
    until: 15 * SECONDS,
  });
}

const REPLACED = { kind: 'spare', at: SETTLED + 100, server: A, lag: 200, connections: 'broken' } as const;

/** Faults that audits found. The name of each states what the library guarantees instead. */
export const AUDIT_SCHEDULES: readonly AuditSchedule[] = [
  {
    name: 'keeps an empty spare out that has run for long and took the address of a master',
    schedule: twoBelievers(1, { ...REPLACED, data: 'empty' }),
  },
  {
    name: 'keeps a spare out that was filled from an older copy of the data, in which a marker is',
    schedule: twoBelievers(1, { ...REPLACED, data: 'stale' }),
  },
  {
    name: 'keeps a master out that came back with an older copy of its data, and had no memory to mark it',
    schedule: twoBelievers(2, {
      kind: 'crash',
      at: SETTLED + 100,
      server: A,
      down: 50,
      data: 'stale',
      lag: 200,
      full: 100,
    }),
  },
  {
    name: 'keeps a master out whose marker was deleted with its locks',
    schedule: twoBelievers(3, flushed(A, SETTLED + 100)),
  },
  {
    name: 'numbers locks upwards after all data was lost, on masters whose clocks are a little late',
    schedule: schedule(7, {
      options: ONE,
      processes: [{}, {}],
      offsets: [-400, -400, 400],
      operations: [
        lock(HOLDER, SETTLED, { ttl: 1 * SECONDS, work: 10, tokenAt: 0 }),
        lock(RIVAL, SETTLED + 250, { ttl: 1 * SECONDS, wait: 5 * SECONDS, work: 10, tokenAt: 0 }),
      ],
      faults: [apart(RIVAL, C, 3_500, 12 * SECONDS), { kind: 'loseAll', at: 3_600, within: 0, down: 100 }],
    }),
  },
  {
    name: 'reports a loss within a second of true time after the machine of the holder was suspended',
    schedule: schedule(8, {
      processes: [{}],
      operations: [lock(HOLDER, SETTLED, { work: 120 * SECONDS })],
      until: 90 * SECONDS,
      faults: [{ kind: 'suspend', at: SETTLED + 200, process: HOLDER, lasts: 60 * SECONDS }],
    }),
  },
  {
    name: 'keeps the lock of a healthy client when the clocks of another one stood still',
    schedule: schedule(9, {
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED, { extend: true, work: 20 * SECONDS }),
        lock(RIVAL, 7 * SECONDS, SHORT),
        lock(HOLDER, 8 * SECONDS, { resources: ['c'], work: 10 }),
      ],
      until: 25 * SECONDS,
      faults: [{ kind: 'stun', at: SETTLED + 100, process: RIVAL, lasts: 3 * SECONDS }],
    }),
  },
  {
    name: 'keeps the lock of a healthy client when a process comes whose maxTtl is larger',
    schedule: schedule(10, {
      options: ONE,
      processes: [{}, { maxTtl: 30 * SECONDS, startsAt: 5 * SECONDS }],
      isKnown: false,
      operations: [lock(HOLDER, SETTLED, { ttl: 1 * SECONDS, extend: true, work: 8 * SECONDS })],
      faults: [],
    }),
  },
  {
    name: 'wakes one of two waiters for a release although their lists have the masters in different orders',
    schedule: schedule(24, {
      processes: [{}, { order: [0, 1, 2] }, { order: [1, 2, 0] }],
      operations: [
        lock(HOLDER, SETTLED, { work: 2 * SECONDS }),
        lock(RIVAL, SETTLED + 200, { wait: 5 * SECONDS, work: 10 }),
        lock(OTHER, SETTLED + 400, { wait: 5 * SECONDS, work: 10 }),
      ],
      until: 10 * SECONDS,
      faults: [],
    }),
  },
  {
    name: 'lets a process whose monotonic clock jumps end no quarantine for others',
    schedule: schedule(1, {
      processes: [{}, {}, {}],
      operations: [
        lock(HOLDER, SETTLED, { work: 9 * SECONDS }),
        lock(RIVAL, SETTLED + 2_200, { wait: 6 * SECONDS, work: 100 }),
      ],
      faults: [
        ...away(HOLDER, C, SETTLED - 2, 9 * SECONDS),
        restartedEmpty(A, SETTLED + 200),
        { kind: 'stumble', at: SETTLED + 2_000, process: OTHER, by: 31 * SECONDS, lasts: 0 },
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'lets no master vote early because one monotonic clock jumps when all have lost their data',
    schedule: schedule(1, {
      processes: [{}, {}, {}],
      operations: [
        lock(HOLDER, SETTLED, { work: 9 * SECONDS }),
        lock(OTHER, SETTLED + 310, { resources: ['z'], work: 10 }),
        ...several(60, SETTLED + 350, 60, {}, RIVAL),
      ],
      faults: [
        ...MASTERS.map((server) => flushed(server, SETTLED + 300)),
        { kind: 'stumble', at: SETTLED + 330, process: OTHER, by: 3 * SECONDS, lasts: 0 },
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'connects a holder anew whose connections are half-open when all masters lose their data',
    schedule: schedule(1, {
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED, { extend: true, work: 15 * SECONDS }),
        lock(RIVAL, SETTLED + 1_500, { wait: 8 * SECONDS, work: 100 }),
      ],
      faults: [
        { kind: 'halfOpen', at: SETTLED + 299, process: HOLDER, servers: MASTERS },
        { kind: 'loseAll', at: SETTLED + 300, within: 0, down: 50 },
      ],
      until: 20 * SECONDS,
    }),
  },
  {
    name: 'connects a process anew whose connections become half-open during a quarantine',
    schedule: schedule(1, {
      processes: [{}, {}],
      isKnown: false,
      operations: [lock(RIVAL, 900, { ...SHORT, wait: 15 * SECONDS })],
      faults: [{ kind: 'halfOpen', at: 500, process: HOLDER, servers: [A, B] }],
      until: 14 * SECONDS,
    }),
  },
  {
    name: 'lets a first call that was on its way for ten seconds change no marker, and no request after it take a lock',
    schedule: schedule(1, {
      processes: [{}, {}, {}],
      operations: [
        lock(HOLDER, SETTLED + 10_700, { work: 9 * SECONDS }),
        ...several(20, SETTLED + 11_025, 20, { work: 10 }, RIVAL),
      ],
      faults: [
        cut(OTHER, A, SETTLED),
        { kind: 'slow', at: SETTLED, process: OTHER, server: A, lasts: 1 * SECONDS, least: 5_000, latency: 5_001 },
        flushed(A, SETTLED + 200),
        cut(HOLDER, C, SETTLED + 10_698),
        apart(HOLDER, C, SETTLED + 10_698, 900),
        flushed(A, SETTLED + 11_000),
      ],
      until: SETTLED + 23 * SECONDS,
    }),
  },
  {
    name: 'lets a request that outlives its connection take no lock on a master that was flushed meanwhile',
    schedule: schedule(1, {
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED, { work: 9 * SECONDS }),
        ...several(5, SETTLED + 100, 10, { work: 100 }, RIVAL),
      ],
      faults: [
        ...away(HOLDER, C, SETTLED - 2, 9 * SECONDS),
        { kind: 'orphan', at: SETTLED + 50, process: RIVAL, server: A, lasts: 500 },
        flushed(A, SETTLED + 300),
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'knows that locks of a shorter list of masters are on a smaller quorum',
    schedule: schedule(1, {
      options: LONGER,
      offsets: [0, 0, 0, 0],
      processes: [{ order: [A, B, C] }, { order: [A, B, C, D] }],
      operations: [lock(HOLDER, SETTLED + 200, LONG), lock(RIVAL, SETTLED + 1_000, { wait: 27 * SECONDS, work: 100 })],
      faults: [
        cut(HOLDER, C, SETTLED + 198),
        apart(HOLDER, C, SETTLED + 198, 500),
        apart(RIVAL, B, SETTLED + 400, 45 * SECONDS),
        apart(HOLDER, A, SETTLED + 400, 50 * SECONDS),
        restartedEmpty(A, SETTLED + 500),
      ],
      until: 50 * SECONDS,
    }),
  },
  {
    name: 'lets no wall clock that is set forward end a wait',
    schedule: schedule(1, {
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED, { extend: true, work: 13 * SECONDS }),
        lock(RIVAL, SETTLED + 100, { wait: 15 * SECONDS, work: 10 }),
      ],
      faults: [{ kind: 'wallJump', at: SETTLED + 600, process: RIVAL, by: 20 * SECONDS }],
      until: 20 * SECONDS,
    }),
  },
  {
    name: 'counts one server once although an address leads to the server of another master, and back during a round',
    schedule: schedule(15, {
      processes: [{}, {}],
      operations: [lock(HOLDER, SETTLED), ...several(40, SETTLED + 200, 20, { wait: 15, work: 5 }, RIVAL)],
      faults: [
        ...away(HOLDER, A, SETTLED - 2, 9 * SECONDS),
        flushed(B, SETTLED + 50),
        { kind: 'twin', at: SETTLED + 100, server: B, other: A, lasts: 500 },
        { kind: 'slow', at: SETTLED + 150, process: RIVAL, server: A, lasts: 800, latency: 30 },
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'waits for each loss of data anew',
    schedule: schedule(3, waitsTwice(10 * SECONDS, 42 * SECONDS)),
  },
];

/**
 * The second process cannot read C. It begins to wait when A and B lose their data, is cut off, and comes back when A and
 * B, which vote again by then, have lost their data once more.
 */
function waitsTwice(first: number, second: number): Course {
  return {
    options: LONGER,
    processes: [{}, {}, {}, { startsAt: second + 2_500 }],
    operations: [
      lock(OTHER, first + 500, SHORT),
      lock(OTHER, second - 1_500, SHORT),
      lock(HOLDER, second - 300, LONG),
      ...several(10, second + 3_000, 300, { work: 20 }, LATER),
    ],
    faults: [
      apart(RIVAL, C, first - 500, 60 * SECONDS),
      cut(RIVAL, C, first - 500),
      ...[A, B].flatMap((server) => [
        flushed(server, first),
        cut(RIVAL, server, first + 5),
        apart(RIVAL, server, first + 250, second - first - 200),
        cut(RIVAL, server, first + 250),
        apart(HOLDER, server, second - 100, 45 * SECONDS),
        flushed(server, second),
      ]),
      { kind: 'leave', at: second - 500, process: OTHER },
      cut(HOLDER, C, second - 302),
    ],
    until: second + 45 * SECONDS,
  };
}
