import type { RedlockOptions } from '../../lib/core/settings/options.js';
import type { Fault, Operation, ProcessPlan, Schedule } from './schedule.js';

const [A, B, C] = [0, 1, 2];
const [FIRST, SECOND, THIRD] = [0, 1, 2];
const SECONDS = 1_000;
const HOUR = 3_600 * SECONDS;
/** Time after which masters without a marker vote, in milliseconds. */
const SETTLED = 3_400;

/** A schedule in which an earlier version broke a guarantee. Only delays are random. */
export interface AuditSchedule {
  /** What the library guarantees, as a full sentence after "it". */
  readonly name: string;
  readonly schedule: Schedule;
}

export interface Course {
  readonly options?: RedlockOptions;
  readonly processes: readonly Partial<ProcessPlan>[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  readonly uptime?: number;
  readonly offsets?: readonly number[];
  readonly durable?: boolean;
  /** Whether the masters were in use before. */
  readonly isKnown?: boolean;
  readonly until?: number;
  /** Longest delay of a message without faults, in milliseconds. */
  readonly latency?: number;
}

const TEN: RedlockOptions = { ttl: '10s', maxTtl: '10s' };
const ONE: RedlockOptions = { ttl: '1s', maxTtl: '1s' };

/** Three masters, perfect clocks and a fast network, except for what the course changes. */
export function schedule(seed: number, { options = TEN, processes, operations, faults, ...more }: Course): Schedule {
  const { uptime = 100_000, offsets = [0, 0, 0], durable = false, isKnown = false, until, latency = 0.5 } = more;
  return {
    ...{ seed, options, operations, faults, latency },
    ...(durable && { durable }),
    ...(until !== undefined && { until }),
    servers: offsets.map((offset) => ({ rate: 1, offset, uptime, isKnown })),
    processes: processes.map((plan) => ({ rate: 1, offset: 0, startsAt: 0, ...plan })),
  };
}

export function lock(process: number, at: number, how: Partial<Operation> = {}): Operation {
  return {
    ...{ process, at, resources: ['a'], ttl: 10 * SECONDS, wait: 0, extend: false, minHold: 0, work: 8 * SECONDS },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined, ...how },
  };
}

/** Cuts a process off from one master for a while. Its messages arrive afterwards. */
export function apart(
  process: number,
  server: number,
  at: number,
  lasts: number,
  direction: 'in' | 'both' = 'both',
): Fault {
  return { kind: 'partition', at, process, server, lasts, direction };
}

/** The first process holds a lock on A and B only. Then a fault hits A, and the second process asks A and C. */
function twoBelievers(seed: number, faults: readonly Fault[], asksAt = SETTLED + 300): Schedule {
  return schedule(seed, {
    processes: [{}, {}],
    // The first request lets the second process identify the server before the fault.
    operations: [
      lock(FIRST, SETTLED),
      lock(SECOND, asksAt - 50, { resources: ['b'], work: 10 }),
      lock(SECOND, asksAt, { work: 100 }),
    ],
    faults: [apart(FIRST, C, SETTLED - 50, 6 * SECONDS), ...faults],
    until: 15 * SECONDS,
  });
}

/** The first client holds a lock throughout, and takes another after the second client, which is sick, has taken one. */
function besideASickClient(at: number, fault: Fault): Schedule {
  return schedule(9, {
    processes: [{}, {}],
    operations: [
      lock(FIRST, SETTLED, { extend: true, work: 20 * SECONDS }),
      lock(SECOND, at, { resources: ['b'], work: 10 }),
      lock(FIRST, at + 1 * SECONDS, { resources: ['c'], work: 10 }),
    ],
    until: 25 * SECONDS,
    faults: [fault],
  });
}

const replaced = { at: SETTLED + 100, server: A, lag: 200 } as const;

/** Faults that an audit found. The name of each states what the library guarantees instead. */
export const AUDIT_SCHEDULES: readonly AuditSchedule[] = [
  {
    name: 'keeps an empty spare out that has run for long and took the address of a master',
    schedule: twoBelievers(1, [{ ...replaced, kind: 'spare', data: 'empty', connections: 'broken' }]),
  },
  {
    name: 'keeps an empty spare out behind a proxy that kept the connections',
    schedule: twoBelievers(1, [{ ...replaced, kind: 'spare', data: 'empty', connections: 'kept' }]),
  },
  {
    name: 'keeps a spare out that was filled from an older copy of the data',
    schedule: twoBelievers(1, [{ ...replaced, kind: 'spare', data: 'stale', connections: 'broken' }]),
  },
  {
    name: 'keeps a master out that started empty with a late clock, whatever its uptime says',
    schedule: twoBelievers(2, [{ kind: 'lateBoot', at: SETTLED + 100, server: A, down: 50 }], SETTLED + 1_500),
  },
  {
    name: 'keeps a master out that was a replica for a moment and lost keys, when its connections were killed',
    schedule: twoBelievers(
      3,
      [{ ...replaced, kind: 'failback', lasts: 100, connections: 'broken' }],
      SETTLED + 3 * SECONDS,
    ),
  },
  {
    name: 'keeps a master out that was a replica for more than a second and lost keys, over connections that survived',
    schedule: twoBelievers(
      3,
      [{ ...replaced, kind: 'failback', lasts: 1_500, connections: 'kept' }],
      SETTLED + 3 * SECONDS,
    ),
  },
  {
    name: 'lets an empty master wait for the longest ttl of others, which the first to meet it does not know',
    schedule: schedule(5, {
      options: ONE,
      // The first process knows only its own maxTtl when the second one raises it.
      processes: [{}, { maxTtl: 12 * SECONDS, startsAt: 500 }],
      operations: [
        lock(SECOND, SETTLED, { resources: ['b'], ttl: 12 * SECONDS, work: 10 }),
        lock(SECOND, 4 * SECONDS, { ttl: 12 * SECONDS, work: 11 * SECONDS }),
        lock(FIRST, 8 * SECONDS, { ttl: 1 * SECONDS, work: 100 }),
      ],
      faults: [
        apart(SECOND, C, 3_900, 5 * SECONDS),
        apart(SECOND, A, 4_400, 8 * SECONDS),
        { kind: 'crash', at: 4_500, server: A, down: 100, data: 'lost', lag: 1 },
      ],
    }),
  },
  {
    name: `notices a step of a master's clock that is small for its own ttl and large for another's`,
    schedule: schedule(6, {
      processes: [{}, {}],
      operations: [
        lock(FIRST, 4 * SECONDS, { ttl: 1 * SECONDS, work: 1_100 }),
        lock(SECOND, 4_930, { ttl: 10 * SECONDS, work: 200 }),
      ],
      faults: [
        { kind: 'cut', at: 3_998, process: FIRST, server: C, cut: 'now' },
        { kind: 'smallStep', at: 4_100, server: A, by: 90 },
      ],
    }),
  },
  {
    name: `notices a step of a master's clock after an idle hour`,
    schedule: schedule(6, {
      options: { ttl: '3s', maxTtl: '3s' },
      processes: [{}, {}],
      operations: [
        lock(FIRST, HOUR, { ttl: 3 * SECONDS, work: 3 * SECONDS }),
        lock(SECOND, HOUR + 1_700, { ttl: 3 * SECONDS, work: 100 }),
      ],
      faults: [
        { kind: 'cut', at: HOUR - 2, process: FIRST, server: C, cut: 'now' },
        { kind: 'smallStep', at: HOUR + 100, server: A, by: 1_500 },
      ],
    }),
  },
  {
    name: 'numbers locks upwards after all data was lost, on masters whose clocks are late',
    schedule: schedule(7, {
      options: ONE,
      processes: [{}, {}],
      offsets: [-300 * SECONDS, -300 * SECONDS, 0],
      operations: [
        lock(FIRST, SETTLED, { ttl: 1 * SECONDS, work: 10, tokenAt: 0 }),
        lock(SECOND, 8 * SECONDS, { ttl: 1 * SECONDS, wait: 5 * SECONDS, work: 10, tokenAt: 0 }),
      ],
      faults: [apart(SECOND, C, 3_500, 12 * SECONDS), { kind: 'loseAll', at: 3_600, within: 0, down: 100 }],
    }),
  },
  {
    name: 'reports a loss within a second of true time after the machine of the holder was suspended',
    schedule: schedule(8, {
      processes: [{}],
      operations: [lock(FIRST, SETTLED, { work: 120 * SECONDS })],
      until: 90 * SECONDS,
      faults: [{ kind: 'suspend', at: SETTLED + 200, process: FIRST, lasts: 60 * SECONDS }],
    }),
  },
  {
    name: 'reports a loss in true time after the virtual machine of the holder was not run',
    schedule: schedule(9, {
      processes: [{}, {}],
      operations: [lock(FIRST, SETTLED, { work: 30 * SECONDS })],
      until: 25 * SECONDS,
      faults: [{ kind: 'clientLag', at: SETTLED + 200, process: FIRST, lasts: 5 * SECONDS }],
    }),
  },
  {
    name: 'reports a loss in true time to a holder whose clocks are slewed',
    schedule: schedule(9, {
      options: { ttl: '30s', maxTtl: '30s' },
      processes: [{}, {}],
      operations: [lock(FIRST, SETTLED, { ttl: 30 * SECONDS, work: 40 * SECONDS })],
      faults: [{ kind: 'slew', at: SETTLED - 100, process: FIRST, lasts: 50 * SECONDS, by: 0.083 }],
    }),
  },
  {
    name: 'keeps the lock of a healthy client when the clocks of another one stood still',
    schedule: besideASickClient(7 * SECONDS, {
      kind: 'clientLag',
      at: SETTLED + 100,
      process: SECOND,
      lasts: 3 * SECONDS,
    }),
  },
  {
    name: 'keeps the lock of a healthy client when the clocks of another one are slewed',
    schedule: besideASickClient(9 * SECONDS, {
      kind: 'slew',
      at: SETTLED + 100,
      process: SECOND,
      lasts: 10 * SECONDS,
      by: 0.083,
    }),
  },
  {
    name: 'ends a quarantine for one step of a clock once, even if other processes notice that step later',
    schedule: schedule(9, {
      options: { ttl: '1s', maxTtl: '10s' },
      processes: [{}, {}, {}],
      operations: [
        lock(SECOND, 5 * SECONDS, { resources: ['b'], ttl: 1 * SECONDS, work: 10 }),
        lock(THIRD, 14 * SECONDS, { resources: ['b'], ttl: 1 * SECONDS, work: 10 }),
      ],
      faults: [{ kind: 'serverJump', at: 4 * SECONDS, server: A, by: 5 * SECONDS }],
    }),
  },
  {
    name: 'lets new masters vote although a process that takes no lock may use longer ones',
    schedule: schedule(10, {
      options: ONE,
      processes: [{}, { maxTtl: HOUR }],
      uptime: 500,
      operations: [lock(FIRST, 20, { ttl: 1 * SECONDS, wait: 5 * SECONDS, work: 10 })],
      faults: [{ kind: 'leave', at: 2 * SECONDS, process: SECOND }],
    }),
  },
  {
    name: 'keeps the lock of a healthy client when a process comes that may use longer ones',
    schedule: schedule(10, {
      options: ONE,
      processes: [{}, { maxTtl: 30 * SECONDS, startsAt: 5 * SECONDS }],
      uptime: 500,
      operations: [lock(FIRST, SETTLED, { ttl: 1 * SECONDS, extend: true, work: 8 * SECONDS })],
      faults: [],
    }),
  },
  {
    name: 'keeps no process out for long that starts after the clocks of new masters were set back',
    schedule: schedule(11, {
      options: ONE,
      processes: [{}, { startsAt: 10 * SECONDS }, { startsAt: 20 * SECONDS }],
      uptime: 500,
      offsets: [HOUR, HOUR, HOUR],
      operations: [
        lock(SECOND, 14 * SECONDS, { ttl: 1 * SECONDS, wait: 5 * SECONDS, work: 10 }),
        lock(THIRD, 21 * SECONDS, { ttl: 1 * SECONDS, wait: 0, work: 10 }),
      ],
      faults: [A, B, C].map((server) => ({ kind: 'serverJump', at: 500, server, by: -HOUR })),
    }),
  },
  {
    name: 'forgets a larger maxTtl when no process has used it for that long',
    schedule: schedule(12, {
      options: ONE,
      processes: [{ startsAt: 1_000 }, { maxTtl: 60 * SECONDS }],
      operations: [
        lock(SECOND, SETTLED, { ttl: 60 * SECONDS, work: 10 }),
        lock(FIRST, 80 * SECONDS, { ttl: 1 * SECONDS, work: 10 }),
      ],
      faults: [
        { kind: 'leave', at: 4 * SECONDS, process: SECOND },
        { kind: 'crash', at: 75 * SECONDS, server: A, down: 100, data: 'lost', lag: 1 },
      ],
    }),
  },
  {
    name: 'lets new masters vote within 3 s with the default options',
    schedule: schedule(13, {
      options: {},
      processes: [{}, {}],
      uptime: 500,
      operations: [lock(FIRST, 20, { wait: 5 * SECONDS, work: 10 })],
      faults: [],
    }),
  },
  {
    name: 'keeps a lock while durable masters are restarted one after the other',
    schedule: schedule(16, {
      options: { ttl: '3s', maxTtl: '10s' },
      durable: true,
      processes: [{}],
      operations: [lock(FIRST, SETTLED, { ttl: 3 * SECONDS, extend: true, work: 12 * SECONDS })],
      faults: [
        { kind: 'durableRestart', at: 4 * SECONDS, server: A, down: 200 },
        { kind: 'durableRestart', at: 7 * SECONDS, server: B, down: 200 },
      ],
    }),
  },
  {
    name: 'wakes one of two waiters for a release although their lists have the masters in different orders',
    schedule: schedule(24, {
      processes: [{}, { order: [0, 1, 2] }, { order: [1, 2, 0] }],
      operations: [
        lock(FIRST, SETTLED, { work: 2 * SECONDS }),
        lock(SECOND, SETTLED + 200, { wait: 5 * SECONDS, work: 10 }),
        lock(THIRD, SETTLED + 400, { wait: 5 * SECONDS, work: 10 }),
      ],
      until: 10 * SECONDS,
      faults: [],
    }),
  },
  {
    name: "notices a step of a master's clock in the first second of a process",
    schedule: schedule(14, {
      isKnown: true,
      processes: [{}, {}],
      operations: [lock(FIRST, 330, { work: 50 }), lock(SECOND, 350, { wait: 8 * SECONDS, work: 100 })],
      faults: [{ kind: 'serverJump', at: 345, server: C, by: 18 * SECONDS }, apart(SECOND, B, 346, 900)],
      until: 15 * SECONDS,
    }),
  },
  {
    name: "notices a step of a master's clock although its address led to another server in between",
    schedule: schedule(15, {
      isKnown: true,
      processes: [{}, {}],
      operations: [lock(FIRST, 1_130, { work: 8 * SECONDS }), lock(SECOND, 2_000, { wait: 6 * SECONDS, work: 100 })],
      faults: [
        apart(FIRST, B, 1_100, 900),
        { kind: 'serverJump', at: 1_144, server: C, by: 18 * SECONDS },
        { kind: 'twin', at: 1_155, server: C, other: A, lasts: 744 },
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'keeps a master out for the whole quarantine although its clock jumps forward in that time',
    schedule: schedule(15, {
      isKnown: true,
      processes: [{}, {}],
      operations: [lock(FIRST, 1_130), lock(SECOND, 3 * SECONDS, { wait: 5.5 * SECONDS, work: 100 })],
      faults: [
        { kind: 'oom', at: 1_100, server: C, lasts: 900 },
        { kind: 'flush', at: 1_200, server: A },
        { kind: 'serverJump', at: 2_500, server: A, by: 5 * SECONDS },
      ],
      until: 15 * SECONDS,
    }),
  },
];
