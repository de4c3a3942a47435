import type { JobPolicy } from '../../../lib/schedule/job-policy.js';
import { Chance } from '../engine/chance.js';
import type { Fault, FaultAction, InstancePlan, JobsPlan, MachinePlan, Point, SchedulePlan, WorkPlan } from './plan.js';
import { scheduleOf } from './schedules.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** The largest error of a clock, in milliseconds. */
export const MAX_ERROR = 5 * MINUTE;
/** Clocks of different machines run at rates that differ by this share at most. */
const MAX_DRIFT = 100e-6;
/** Most faults hit an instance in the middle of these. */
const POINTS_OF_RUNS = ['stores a start', 'stores a start', 'runs', 'runs', 'has run', 'stores an end'] as const;
const POINTS: readonly Point[] = [
  ...POINTS_OF_RUNS,
  ...(['asks for the lock', 'opens the record', 'has read the record', 'releases the lock'] as const),
];
const KINDS = ['crash', 'crash', 'crash', 'shutdown', 'pause', 'pause', 'partition', 'loss', 'loss'] as const;

/** In Berlin, the hour from two to three is missing on that day, and in the other half of the year repeated. */
const DAYS = [Date.UTC(2025, 0, 15), Date.UTC(2025, 2, 30), Date.UTC(2025, 9, 26)];
const CRONS: readonly SchedulePlan[] = [
  { kind: 'cron', expression: '*/15 * * * *', timeZone: 'UTC' },
  { kind: 'cron', expression: '5,25,45 * * * *', timeZone: 'UTC' },
  { kind: 'cron', expression: '0,30 * * * *', timeZone: 'Europe/Berlin' },
];

export function generate(seed: number): JobsPlan {
  const chance = new Chance(seed, 1);
  const count = chance.pick([3, 3, 3, 3, 3, 3, 1, 5]);
  const ttl = chance.pick([10, 10, 30, 60]) * SECOND;
  const schedule = scheduleFor(chance);
  const ticks = scheduleOf(schedule);
  const day = chance.pick(DAYS) + chance.whole(0, 4 * 60) * MINUTE;
  const first = ticks.next(day);
  const period = ticks.next(first) - first;
  const startsAt = first - chance.whole(10, 150) * SECOND;
  const lasts = chance.pick([1.3, 2.3]) * period;
  const work = workFor(chance, period);
  const instances = Array.from({ length: chance.whole(3, 4) }, (_, index) => instance(chance, index, lasts));
  const faults = Array.from({ length: chance.whole(0, 4) }, () =>
    fault(chance, { instances: instances.length, masters: count, ttl, lasts, period, lead: first - startsAt }),
  );
  // The same again for the next attempts.
  const [initial] = faults;
  if (initial && 'point' in initial.when && chance.happens(0.2)) {
    const { when, action } = initial;
    faults.push({ when: { ...when, nth: when.nth + 1 }, action }, { when: { ...when, nth: when.nth + 2 }, action });
  }
  if (chance.happens(0.04)) {
    const when = { point: chance.pick(POINTS), nth: chance.whole(1, 4), delay: chance.spread(0.1, 20) };
    faults.push({ when, action: { kind: 'great loss', down: Math.round(chance.spread(10, 2_000)) } });
  }
  return {
    ...{ seed, schedule, startsAt, lasts, ttl, work, instances, faults },
    masters: masters(chance, count),
    policy: policyFor(chance),
    latency: chance.pick([1, 3, 10]),
  };
}

function scheduleFor(chance: Chance): SchedulePlan {
  if (chance.happens(0.4)) return chance.pick(CRONS);
  return { kind: 'interval', period: chance.pick([15, 15, 20, 30]) * MINUTE };
}

function policyFor(chance: Chance): JobPolicy {
  return {
    recover: chance.happens(0.7),
    catchUp: chance.happens(0.5),
    overlap: chance.pick(['skip', 'queue'] as const),
  };
}

/** Few methods run longer than a period: each second of waiting costs as much as a whole tick. */
function workFor(chance: Chance, period: number): WorkPlan {
  const isLong = chance.happens(0.02);
  return {
    least: isLong ? period * 0.7 : 1,
    most: isLong ? period * 1.15 : chance.pick([20, SECOND, 20 * SECOND, 90 * SECOND]),
    fails: chance.pick([0, 0, 0.2]),
    minds: chance.pick([0, 0.5, 1]),
  };
}

function masters(chance: Chance, count: number): MachinePlan[] {
  // By minutes, which matters to the rules about lost records only.
  const wrong = count >= 3 && chance.happens(0.25) ? chance.whole(0, count - 1) : undefined;
  return Array.from({ length: count }, (_, index) => ({
    rate: rate(chance),
    offset: index === wrong ? error(chance, MAX_ERROR) : error(chance, 100),
  }));
}

function instance(chance: Chance, index: number, lasts: number): InstancePlan {
  const isLate = index > 0 && chance.happens(0.15);
  return {
    rate: rate(chance),
    offset: chance.happens(0.5) ? error(chance, MAX_ERROR) : error(chance, 2 * SECOND),
    startsAt: isLate ? chance.whole(0, lasts) : chance.whole(0, 3_000),
  };
}

function rate(chance: Chance): number {
  return 1 + (chance.fraction() * 2 - 1) * MAX_DRIFT;
}

function error(chance: Chance, most: number): number {
  return Math.round((chance.fraction() * 2 - 1) * most);
}

interface Bounds {
  readonly instances: number;
  readonly masters: number;
  readonly ttl: number;
  readonly lasts: number;
  readonly period: number;
  readonly lead: number;
}

function fault(chance: Chance, bounds: Bounds): Fault {
  const { lasts, period, lead } = bounds;
  if (chance.happens(0.75)) {
    // Within one or two round trips, or in the middle of a longer run.
    const later = chance.happens(0.7) ? chance.spread(0.05, 25) : chance.spread(25, 30 * SECOND);
    const delay = chance.happens(0.2) ? 0 : later;
    const point = chance.pick(POINTS);
    // Each tick runs once, and every instance takes the lock for it.
    const most = POINTS_OF_RUNS.some((one) => one === point) ? 4 : 16;
    const when = { point, nth: Math.ceil(chance.spread(0.5, most)), delay };
    return { when, action: action(chance, { ...bounds, isAtPoint: true }) };
  }
  const nearTick = lead + chance.whole(0, 2) * period + error(chance, 2 * MINUTE);
  const at = Math.max(0, chance.happens(0.5) ? nearTick : chance.whole(0, lasts));
  return { when: { at }, action: action(chance, { ...bounds, isAtPoint: false }) };
}

function action(chance: Chance, bounds: Bounds & { readonly isAtPoint: boolean }): FaultAction {
  const { instances, masters: count, ttl, lasts, isAtPoint } = bounds;
  const kind = chance.pick(KINDS);
  const instance = isAtPoint && chance.happens(0.8) ? 'actor' : chance.whole(0, instances - 1);
  const awayFor = chance.happens(0.3) ? Infinity : Math.round(chance.spread(100, lasts));
  const long = Math.round(chance.spread(20, 3 * ttl));
  switch (kind) {
    case 'crash':
      return { kind, instance, awayFor, what: chance.pick(['process', 'machine'] as const) };
    case 'shutdown':
      return { kind, instance, awayFor, grace: Math.round(chance.spread(1, 10 * SECOND)) };
    case 'pause':
      return {
        ...{ kind, instance, how: chance.pick(['pause', 'suspend'] as const) },
        lasts: chance.happens(0.6) ? Math.round(ttl * (1 + chance.fraction())) : long,
      };
    case 'partition': {
      const all = Array.from({ length: count }, (_, index) => index);
      const cut = chance.happens(0.4) ? all : all.filter(() => chance.happens(0.5));
      return { kind, instance, masters: cut, direction: chance.pick(['out', 'in', 'both'] as const), lasts: long };
    }
    case 'loss':
      return {
        ...{ kind, master: chance.whole(0, count - 1), data: chance.pick(['empty', 'stale', 'flushed'] as const) },
        ...{ lag: Math.round(chance.spread(1, lasts)), down: Math.round(chance.spread(10, 3_000)) },
      };
  }
}
