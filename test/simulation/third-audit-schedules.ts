import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { apart, type AuditSchedule, lock, schedule } from './audit-schedules.js';
import type { Fault, Operation, Schedule } from './schedule.js';

const [A, B, C, D] = [0, 1, 2, 3];
const MASTERS = [A, B, C];
/** The process that holds the lock, one that asks for the same lock, and others. */
const [HOLDER, RIVAL, OTHER, LATER] = [0, 1, 2, 3];
const SECONDS = 1_000;
const DAYS = 86_400 * SECONDS;
/** Time after which masters without a marker vote, in milliseconds. */
const SETTLED = 3_400;

/** New masters know the largest ttl, so that a process that uses it announces it without waiting for an answer. */
const LONGER: RedlockOptions = { ttl: '10s', maxTtl: '30s' };
const TEN: RedlockOptions = { ttl: '10s', maxTtl: '10s' };
const PATIENT = { masterTimeout: '1s' } as const;
const LONG: Partial<Operation> = { ttl: 30 * SECONDS, work: 29 * SECONDS };
const SHORT: Partial<Operation> = { resources: ['b'], work: 10 };

function cut(process: number, server: number, at: number): Fault {
  return { kind: 'cut', at, process, server, cut: 'now' };
}

/** Closes a connection and prevents a new one. */
function away(process: number, server: number, at: number, lasts: number): readonly Fault[] {
  return [cut(process, server, at), apart(process, server, at + 1, lasts)];
}

function restartedEmpty(server: number, at: number): Fault {
  return { kind: 'crash', at, server, down: 100, data: 'lost', lag: 1 };
}

function flushed(server: number, at: number): Fault {
  return { kind: 'flush', at, server };
}

/** The holder is so many milliseconds of one way away from all masters. */
function farAway(latency: number): readonly Fault[] {
  const far = { kind: 'slow', at: 10, process: HOLDER, lasts: 17 * SECONDS } as const;
  return MASTERS.map((server) => ({ ...far, server, least: latency - 1, latency }));
}

function several(count: number, first: number, every: number, how: Partial<Operation>, process: number): Operation[] {
  return Array.from({ length: count }, (_, index) => lock(process, first + index * every, how));
}

/** The holder has its lock on A and B, and loses A just before A is restarted without its data. */
function restartedBehindTheHolder(at: number): readonly Fault[] {
  return [apart(HOLDER, A, at - 100, 50 * SECONDS), restartedEmpty(A, at)];
}

/** The holder has its lock on A and B. A is a replica for a while, without the lock, and the rival asks after that. */
function detour(rivals: readonly Operation[], failback: Fault): Schedule {
  return schedule(1, {
    options: LONGER,
    processes: [{}, {}],
    operations: [lock(HOLDER, SETTLED, LONG), lock(RIVAL, SETTLED + 50, SHORT), ...rivals],
    faults: [...away(HOLDER, C, SETTLED - 2, 6 * SECONDS), apart(HOLDER, A, SETTLED + 50, 40 * SECONDS), failback],
    until: 40 * SECONDS,
  });
}

/** Faults that a third audit found. The name of each states what the library guarantees instead. */
export const THIRD_AUDIT_SCHEDULES: readonly AuditSchedule[] = [
  {
    name: 'counts no grant of a master that was connected anew and has not heard of the ttl',
    schedule: schedule(1, {
      options: { ...LONGER, ...PATIENT },
      processes: [{}, {}],
      operations: [
        // Only A is connected when it asks. B is connected while A, the home master, takes long to answer.
        lock(HOLDER, 6_950, { ...LONG, wait: 5 * SECONDS }),
        lock(RIVAL, 8_400, { wait: 26 * SECONDS, work: 100 }),
      ],
      faults: [
        ...away(HOLDER, B, 4 * SECONDS, 1_500),
        ...away(HOLDER, C, 4 * SECONDS, 60 * SECONDS),
        apart(HOLDER, A, 6_951, 400, 'in'),
        ...restartedBehindTheHolder(8_100),
      ],
      until: 50 * SECONDS,
    }),
  },
  {
    name: 'counts no grant of a master that has not heard of the ttl, as long as too few masters are known',
    schedule: schedule(1, {
      options: { ...LONGER, ...PATIENT },
      processes: [{ startsAt: 5 * SECONDS }, {}],
      operations: [
        lock(HOLDER, 5_950, { ...LONG, wait: 5 * SECONDS }),
        lock(RIVAL, 8_400, { wait: 26 * SECONDS, work: 100 }),
      ],
      faults: [
        apart(HOLDER, B, 4_990, 500),
        apart(HOLDER, C, 4_990, 60 * SECONDS),
        apart(HOLDER, A, 5_951, 400, 'in'),
        ...restartedBehindTheHolder(8_100),
      ],
      until: 50 * SECONDS,
    }),
  },
  {
    name: 'announces a ttl again after the machine was suspended',
    schedule: schedule(1, {
      options: LONGER,
      processes: [{}, {}],
      operations: [
        lock(HOLDER, 4 * SECONDS, { ...SHORT, ttl: 30 * SECONDS }),
        lock(HOLDER, 39_700, { ...LONG, wait: 5 * SECONDS }),
        lock(RIVAL, 41 * SECONDS, { wait: 26 * SECONDS, work: 100 }),
      ],
      faults: [
        ...away(HOLDER, C, 3_990, 90 * SECONDS),
        { kind: 'suspend', at: 4_100, process: HOLDER, lasts: 35_500 },
        ...restartedBehindTheHolder(40_500),
      ],
      until: 80 * SECONDS,
    }),
  },
  {
    name: 'announces a ttl again that masters without memory have refused',
    schedule: schedule(1, {
      options: LONGER,
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED, { ...LONG, wait: 5 * SECONDS }),
        lock(RIVAL, SETTLED + 2_300, { wait: 27 * SECONDS, work: 100 }),
      ],
      faults: [
        ...away(HOLDER, C, SETTLED - 50, 40 * SECONDS),
        ...[A, B].map((server) => ({ kind: 'oom', at: SETTLED - 2, server, lasts: 150 }) as const),
        ...restartedBehindTheHolder(SETTLED + 2_100),
      ],
      until: 50 * SECONDS,
    }),
  },
  {
    name: 'lets the veto of a holder land between the announcements of many processes',
    schedule: schedule(1, {
      processes: [{}, {}],
      operations: [
        lock(HOLDER, 5 * SECONDS, { work: 9 * SECONDS }),
        lock(RIVAL, 5_500, { wait: 6 * SECONDS, work: 100 }),
      ],
      faults: [
        ...farAway(15),
        { kind: 'storm', at: 5_200, lasts: 8 * SECONDS, every: 5 },
        ...MASTERS.map((server) => flushed(server, 5_400)),
      ],
      until: 16 * SECONDS,
    }),
  },
  {
    name: 'lets new masters vote within 3 s while many processes announce their ttl',
    schedule: schedule(1, {
      processes: [{}, {}, {}, {}, {}],
      uptime: 500,
      latency: 5,
      operations: [lock(HOLDER, 20, { wait: 5 * SECONDS, work: 10 })],
      faults: [{ kind: 'storm', at: 0, lasts: 9 * SECONDS, every: 0 }],
    }),
  },
  {
    name: 'lets the veto of a holder that is 160 ms away arrive in time',
    schedule: schedule(1, {
      options: { ...TEN, ...PATIENT },
      processes: [{}, {}],
      operations: [
        lock(HOLDER, 7 * SECONDS, { work: 9 * SECONDS }),
        lock(RIVAL, 8_050, { wait: 6 * SECONDS, work: 100 }),
      ],
      faults: [...farAway(160), ...MASTERS.map((server) => flushed(server, 8 * SECONDS))],
      until: 18 * SECONDS,
    }),
  },
  {
    name: "remembers a step of a master's clock although one answer about it is slow",
    schedule: schedule(1, {
      processes: [{}, {}],
      operations: [
        lock(RIVAL, SETTLED - 60, SHORT),
        lock(HOLDER, SETTLED, { work: 9 * SECONDS }),
        ...several(12, SETTLED + 800, 60, { work: 10 }, RIVAL),
      ],
      faults: [
        cut(HOLDER, C, SETTLED - 2),
        apart(HOLDER, A, SETTLED + 50, 9 * SECONDS),
        { kind: 'serverJump', at: SETTLED + 700, server: A, by: 10 * SECONDS },
        apart(RIVAL, A, SETTLED + 801, 300, 'in'),
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: "remembers the longest ttl in use when a master's clock jumps over the end of its announcement",
    schedule: schedule(1, {
      options: LONGER,
      processes: [{}, {}],
      operations: [
        lock(HOLDER, SETTLED + 1_500, LONG),
        lock(RIVAL, SETTLED + 2_400, SHORT),
        lock(RIVAL, SETTLED + 3_000, { wait: 26 * SECONDS, work: 100 }),
      ],
      faults: [
        cut(HOLDER, C, SETTLED + 1_498),
        ...[A, B].map((server) => apart(HOLDER, server, SETTLED + 1_600, 40 * SECONDS)),
        { kind: 'serverJump', at: SETTLED + 2_300, server: B, by: 40 * SECONDS },
      ],
      until: 50 * SECONDS,
    }),
  },
  {
    name: 'keeps a master out that was a replica and whose backlog has ended since',
    schedule: detour([lock(RIVAL, SETTLED + 1_000, { work: 100 })], {
      ...{ kind: 'failback', at: SETTLED + 200, server: A, lag: 250, connections: 'broken', lasts: 100 },
      forgets: true,
    }),
  },
  {
    name: 'keeps a master out that was a replica and was loading its data when its history was to be compared',
    schedule: detour([lock(RIVAL, SETTLED + 1_200, { work: 10 }), lock(RIVAL, SETTLED + 1_700, { work: 100 })], {
      ...{ kind: 'failback', at: SETTLED + 100, server: A, lag: 150, connections: 'kept', lasts: 1_500 },
      loads: true,
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
    name: 'lets no new masters vote early for all processes because one monotonic clock jumps',
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
    name: "lets a process whose clock stumbles accuse no master's clock",
    schedule: schedule(6, {
      processes: [{}, {}, {}],
      operations: [...several(6, SETTLED, 300, SHORT, OTHER), ...several(4, SETTLED + 1_600, 50, SHORT, OTHER)],
      faults: [
        // Only A answers while the clock is ahead.
        ...[B, C].map((server) => {
          return { kind: 'late', at: SETTLED + 1_499, process: OTHER, server, direction: 'in', lasts: 60 } as const;
        }),
        { kind: 'stumble', at: SETTLED + 1_499, process: OTHER, by: 15, lasts: 50 },
      ],
      until: SETTLED + 5 * SECONDS,
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
      uptime: 500,
      operations: [lock(RIVAL, 900, { ...SHORT, wait: 5 * SECONDS })],
      faults: [{ kind: 'halfOpen', at: 500, process: HOLDER, servers: [A, B] }],
      until: 4 * SECONDS,
    }),
  },
  {
    name: 'refuses a marker that was on its way for ten seconds',
    schedule: schedule(1, {
      processes: [{}, {}, {}],
      operations: [
        lock(RIVAL, SETTLED + 5, SHORT),
        lock(OTHER, SETTLED + 200, SHORT),
        lock(HOLDER, SETTLED + 10_700, { work: 9 * SECONDS }),
        ...several(20, SETTLED + 11_025, 20, { work: 10 }, OTHER),
      ],
      faults: [
        flushed(A, SETTLED),
        // Between its reading and its writing. What it writes arrives after the second loss.
        {
          ...{ kind: 'late', at: SETTLED + 7.5, process: RIVAL, server: A, direction: 'out' },
          lasts: 11 * SECONDS + 0.5,
        },
        cut(HOLDER, C, SETTLED + 10_698),
        apart(HOLDER, C, SETTLED + 10_698, 900),
        flushed(A, SETTLED + 11_000),
      ],
      until: SETTLED + 23 * SECONDS,
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
        ...restartedBehindTheHolder(SETTLED + 500),
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
    name: 'keeps a single master out whose clock is set forward while a process watches its quarantine',
    schedule: schedule(1, {
      options: { ...TEN, restartGuard: true },
      offsets: [0],
      isKnown: true,
      processes: [{}, {}],
      operations: [
        lock(RIVAL, SETTLED - 500, SHORT),
        lock(HOLDER, SETTLED, { work: 9 * SECONDS }),
        ...several(8, SETTLED + 2_600, 300, { work: 10 }, RIVAL),
      ],
      faults: [
        restartedEmpty(A, SETTLED + 200),
        { kind: 'serverJump', at: SETTLED + 2_500, server: A, by: 60 * SECONDS },
      ],
      until: 15 * SECONDS,
    }),
  },
  {
    name: 'judges the step of a clock by other masters, and not by a second address of the same one',
    schedule: schedule(1, {
      options: { ttl: '20s', maxTtl: '20s' },
      processes: [{}, {}],
      operations: [
        lock(RIVAL, SETTLED - 500, SHORT),
        lock(HOLDER, SETTLED, { ttl: 20 * SECONDS, work: 19 * SECONDS }),
        ...several(8, SETTLED + 2_100, 100, { ttl: 20 * SECONDS, work: 100 }, RIVAL),
      ],
      faults: [
        ...away(HOLDER, C, SETTLED - 2, 1 * SECONDS),
        { kind: 'twin', at: SETTLED + 100, server: A, other: B, lasts: 30 * SECONDS },
        { kind: 'serverJump', at: SETTLED + 2 * SECONDS, server: B, by: 25 * SECONDS },
      ],
      until: 40 * SECONDS,
    }),
  },
  {
    name: 'lets no master vote early beside one whose clock was set back, and which a holder relies on',
    schedule: besideOneSetBack(600 * SECONDS),
  },
  {
    name: 'lets no master vote early beside one whose clock was set back into its wait',
    schedule: besideOneSetBack(20_800),
  },
  {
    name: 'keeps a state although the clock of the first master is set forward by the life of the state',
    schedule: aheadByALife(29.5 * DAYS, away(RIVAL, C, 19_800, 1 * SECONDS)),
  },
  {
    name: 'keeps a state whose entry a clock has ended on one master, and which another master never had',
    schedule: aheadByALife(31 * DAYS, [
      ...away(HOLDER, C, SETTLED, 1 * SECONDS),
      ...away(RIVAL, B, 19_800, 1 * SECONDS),
    ]),
  },
  {
    name: 'waits for each loss of data anew',
    schedule: schedule(3, waitsTwice(10 * SECONDS, 42 * SECONDS)),
  },
];

/**
 * The clock of C is set back before the holder starts, which then holds on B and C. A and B lose their data, and a process
 * that starts after that sees three masters that look new.
 */
function besideOneSetBack(by: number): Schedule {
  return schedule(1, {
    options: { ttl: '20s', maxTtl: '20s' },
    processes: [{ startsAt: 12 * SECONDS }, { startsAt: 21 * SECONDS }, {}],
    operations: [
      lock(OTHER, SETTLED, SHORT),
      lock(HOLDER, 19 * SECONDS, { ttl: 20 * SECONDS, work: 19 * SECONDS }),
      ...several(10, 22 * SECONDS, 500, { work: 10, ttl: 20 * SECONDS }, RIVAL),
    ],
    faults: [
      { kind: 'leave', at: 8 * SECONDS, process: OTHER },
      { kind: 'serverJump', at: 10 * SECONDS, server: C, by: -by },
      ...away(HOLDER, A, 18 * SECONDS, 40 * SECONDS),
      ...away(HOLDER, B, 20 * SECONDS, 40 * SECONDS),
      restartedEmpty(A, 20_100),
      restartedEmpty(B, 20_100),
    ],
    until: 45 * SECONDS,
  });
}

/** The clock of A is set forward, so that the state has ended by it. A votes again when the state is read. */
function aheadByALife(by: number, faults: readonly Fault[]): Schedule {
  const state = (step: 'get' | 'set'): Partial<Operation> => {
    return { extend: true, work: 1_500, state: { at: 0.1, steps: [step], pause: 0 } };
  };
  return schedule(1, {
    options: { ttl: '10s', maxTtl: '10s' },
    processes: [{}, {}],
    operations: [
      lock(HOLDER, SETTLED + 100, state('set')),
      lock(RIVAL, SETTLED + 2 * SECONDS, SHORT),
      lock(HOLDER, SETTLED + 2_700, SHORT),
      ...[20 * SECONDS, 23 * SECONDS].map((at) => lock(RIVAL, at, state('get'))),
    ],
    faults: [{ kind: 'serverJump', at: SETTLED + 2_500, server: A, by }, ...faults],
    until: 30 * SECONDS,
  });
}

/**
 * The second process cannot read C. It begins to wait when A and B lose their data, is cut off, and comes back when A and
 * B, which vote again by then, have lost their data once more.
 */
function waitsTwice(first: number, second: number): Parameters<typeof schedule>[1] {
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
