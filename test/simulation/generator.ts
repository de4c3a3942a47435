import { Chance } from './engine/chance.js';
import type { ClockPlan, Fault, FaultKind, Operation, Schedule } from './schedule.js';

/** What schedules are made of. Every list is chosen from with equal chances. */
export interface Profile {
  readonly faults: readonly FaultKind[];
  readonly mostFaults: number;
  readonly masters: readonly number[];
  readonly processes: readonly number[];
  readonly ttls: readonly number[];
  /** Share of the locks that are extended while the work runs. */
  readonly extended: number;
  readonly guard: readonly (boolean | undefined)[];
  /** How far rates of clocks may be apart at most. The first is what quartz does. */
  readonly drifts: readonly number[];
  /** How wrong a wall clock may be, in milliseconds. */
  readonly offsets: readonly number[];
  readonly resources: readonly (readonly string[])[];
  /** Most milliseconds that a message takes when nothing is wrong. */
  readonly latencies: readonly number[];
  /** Fewest and most locks that are asked for. */
  readonly operations: readonly [number, number];
  readonly dataAfterCrash: readonly ('kept' | 'lost' | 'stale')[];
  /** After what share of the work a fencing token is asked for, if it is. */
  readonly tokensAt: readonly (number | undefined)[];
}

export const FAULTS: readonly FaultKind[] = [
  ...(['crash', 'crash', 'promote', 'flush', 'evict', 'scriptFlush', 'oom', 'readonly', 'hang', 'serverJump'] as const),
  ...(['partition', 'partition', 'cut', 'cut', 'cut', 'slow', 'pause', 'pause', 'suspend', 'wallJump', 'die'] as const),
];

export const EVERYTHING: Profile = {
  faults: FAULTS,
  mostFaults: 5,
  masters: [1, 3, 3, 3, 3, 3, 3, 3, 4, 5],
  processes: [2, 2, 2, 2, 3, 3, 4],
  ttls: [100, 300, 1_000, 1_000, 3_000, 10_000],
  extended: 0.5,
  guard: [undefined, undefined, undefined, undefined, undefined, undefined, undefined, false],
  // Odd clocks are looked into again and again: a few of these schedules take as long as hundreds of others.
  drifts: [...Array.from({ length: 18 }, () => 200e-6), 0.008, 0.03],
  offsets: [5, 5, 100, 2_000, 20_000],
  resources: [['a'], ['a'], ['a'], ['a'], ['b'], ['a', 'b']],
  latencies: [0.5, 0.5, 0.5, 5],
  operations: [3, 6],
  dataAfterCrash: ['kept', 'lost', 'lost', 'stale'],
  tokensAt: [undefined, 0, 0, 0.5, 1],
};

/** As much can go wrong between two processes with a few locks, in a third of the time. */
const SHORT: Profile = {
  ...EVERYTHING,
  mostFaults: 3,
  masters: [3],
  processes: [2, 2, 2, 2, 2, 3],
  operations: [1, 3],
};
/** Share of the schedules that are as long as they can be. */
const LONG = 1 / 10;

/** For how long operations begin and faults happen, in milliseconds. */
const BUSY_FOR = 2_500;
const FIRST_OPERATION = 150;

/** Everything that happens in a run, from its seed. */
export function generate(seed: number, profile: Profile = EVERYTHING): Schedule {
  const chance = new Chance(seed);
  const masters = chance.pick(profile.masters);
  const ttl = chance.pick(profile.ttls);
  const maxTtl = ttl * chance.pick([1, 1, 2]);
  const restartGuard = chance.pick(profile.guard);
  const count = chance.pick(profile.processes);
  const drift = chance.pick(profile.drifts);
  const offset = chance.pick(profile.offsets);
  const clock = (): ClockPlan => ({
    rate: 1 + (2 * chance.fraction() - 1) * (drift / 2),
    offset: Math.round((2 * chance.fraction() - 1) * offset),
  });
  const operations = Array.from({ length: chance.whole(...profile.operations) }, () =>
    operation(chance, profile, count, ttl, maxTtl),
  );
  const faults = Array.from({ length: chance.whole(0, profile.mostFaults) }, () => {
    const near = chance.happens(0.6) ? chance.pick(operations).at + chance.fraction() * 30 : undefined;
    const at = near ?? FIRST_OPERATION + chance.fraction() * BUSY_FOR;
    return fault(chance, profile, Math.round(at), masters, count, ttl);
  });
  return {
    seed,
    options: { ttl, maxTtl, ...(restartGuard !== undefined && { restartGuard }), wait: 1_000 },
    servers: Array.from({ length: masters }, () => ({ ...clock(), uptime: chance.happens(0.9) ? 100_000 : 500 })),
    processes: Array.from({ length: count }, () => ({
      ...clock(),
      startsAt: chance.happens(0.85) ? 0 : chance.whole(0, BUSY_FOR),
    })),
    operations,
    faults,
    latency: chance.pick(profile.latencies),
  };
}

/** Like {@link generate}, for a mass of runs: most of them are short. */
export function generateAny(seed: number, faults: readonly FaultKind[] = FAULTS): Schedule {
  const isLong = new Chance(seed, 1).happens(LONG);
  return generate(seed, { ...(isLong ? EVERYTHING : SHORT), faults });
}

function operation(chance: Chance, profile: Profile, processes: number, ttl: number, maxTtl: number): Operation {
  const extend = chance.happens(profile.extended);
  return {
    at: FIRST_OPERATION + Math.round(chance.fraction() * chance.pick([50, 500, BUSY_FOR])),
    process: chance.whole(0, processes - 1),
    resources: chance.pick(profile.resources),
    ttl: chance.happens(0.8) ? ttl : maxTtl,
    wait: chance.pick([0, 20, 300, 2_000, 5_000]),
    extend,
    minHold: chance.happens(0.1) ? Math.min(ttl, 200) : 0,
    work: Math.round(chance.spread(1, extend ? Math.min(3_000, ttl * 5) : ttl * 1.5)),
    tokenAt: chance.pick(profile.tokensAt),
    newTtl: chance.happens(0.15) ? Math.max(20, Math.round(ttl * chance.pick([0.3, 0.5, 1]))) : undefined,
    abortAfter: chance.happens(0.1) ? chance.whole(1, 600) : undefined,
  };
}

function fault(chance: Chance, profile: Profile, at: number, servers: number, processes: number, ttl: number): Fault {
  const kind = chance.pick(profile.faults);
  const server = chance.whole(0, servers - 1);
  const process = chance.whole(0, processes - 1);
  // Around what the algorithm counts with: the timeout of a master, the ttl.
  const lasts = Math.round(chance.happens(0.5) ? chance.spread(5, 200) : chance.spread(ttl * 0.2, ttl * 2 + 500));
  switch (kind) {
    case 'crash':
      return {
        ...{ kind, at, server, down: Math.round(chance.spread(10, 2_000)) },
        ...{ data: chance.pick(profile.dataAfterCrash), lag: chance.whole(1, 1_000) },
      };
    case 'promote':
      return { kind, at, server, lag: chance.whole(1, 300), connections: chance.pick(['kept', 'broken'] as const) };
    case 'flush':
    case 'evict':
    case 'scriptFlush':
      return { kind, at, server };
    case 'oom':
    case 'readonly':
    case 'hang':
      return { kind, at, server, lasts };
    case 'serverJump':
      return { kind, at, server, by: jump(chance, ttl) };
    case 'partition':
      return { kind, at, server, process, lasts, direction: chance.pick(['out', 'in', 'both'] as const) };
    case 'cut':
      return { kind, at, server, process, cut: chance.pick(['now', 'request', 'reply'] as const) };
    case 'slow':
      return { kind, at, server, process, lasts, latency: chance.spread(2, 80) };
    case 'pause':
    case 'suspend':
      return { kind, at, process, lasts };
    case 'wallJump':
      return { kind, at, process, by: jump(chance, ttl) };
    case 'die':
      return { kind, at, process };
  }
}

function jump(chance: Chance, ttl: number): number {
  const size = Math.round(chance.pick([chance.spread(1, 50), chance.spread(2_000, 2_000 + 2 * ttl)]));
  return chance.happens(0.5) ? size : -size;
}
