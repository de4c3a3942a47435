import { Chance } from './engine/chance.js';
import { nestingFor } from './nesting-plans.js';
import { letShare, withoutState } from './sharing-plans.js';
import { ON_CLIENTS } from './assumptions.js';
import type { ClockPlan, Fault, FaultKind, Operation, ProcessPlan, Schedule, StatePlan } from './schedule.js';

/** The material of schedules. Every element of a list has the same probability. */
export interface Profile {
  readonly faults: readonly FaultKind[];
  readonly mostFaults: number;
  readonly masters: readonly number[];
  readonly processes: readonly number[];
  readonly ttls: readonly number[];
  /** Share of the locks that are extended while the work runs. */
  readonly extended: number;
  readonly guard: readonly (boolean | undefined)[];
  /** Largest possible difference between the rates of clocks. The first value is that of quartz. */
  readonly drifts: readonly number[];
  /** Largest possible errors of a wall clock, in milliseconds. */
  readonly offsets: readonly number[];
  readonly resources: readonly (readonly string[])[];
  /** Longest delay of a message without faults, in milliseconds. */
  readonly latencies: readonly number[];
  /** Smallest and largest number of requested locks. */
  readonly operations: readonly [number, number];
  readonly dataAfterCrash: readonly ('kept' | 'lost' | 'stale')[];
  /** Share of the schedules whose masters have just started and have never voted. */
  readonly fresh: number;
  /** Share of the others whose masters have long been in use. In the rest, operations begin when new masters vote. */
  readonly known: number;
  /**
   * Share of the schedules in which processes differ in their options, and others replace them while locks are held.
   */
  readonly rolling: number;
  /** The fraction of the work after which a fencing token is requested; `undefined` for none. */
  readonly tokensAt: readonly (number | undefined)[];
  /** Share of the schedules in which processes use the states of their locks. */
  readonly states: number;
  /** Share of the schedules in which some locks are shared, or permits. */
  readonly sharing: number;
  /** Share of the schedules in which many short sections of one process want the same lock. */
  readonly crowds: number;
  /** Share of the schedules in which callers block their event loop. */
  readonly blocking: number;
  /** Share of the schedules in which calls are nested, and others want several resources. */
  readonly nesting: number;
}

export const FAULTS: readonly FaultKind[] = [
  ...(['crash', 'crash', 'crash', 'flush', 'unmark', 'loseAll', 'spare', 'twin', 'evict', 'scriptFlush'] as const),
  ...(['oom', 'readonly', 'hang', 'serverJump', 'partition', 'partition', 'cut', 'cut', 'cut', 'slow'] as const),
  ...(['late', 'orphan', 'orphan', 'halfOpen', 'pause', 'pause', 'suspend', 'stun', 'slew', 'stumble'] as const),
  ...(['wallJump', 'die', 'leave'] as const),
];
export const KINDS: ReadonlySet<FaultKind> = new Set(FAULTS);
/** How far the clock of another machine may be ahead, in milliseconds. */
const AHEAD = [0, -5_000, -50, 50, 5_000];
/** Share of the schedules in which no fault affects a master. */
const MASTERS_FINE = 1 / 10;

export const EVERYTHING: Profile = {
  faults: FAULTS,
  mostFaults: 5,
  masters: [1, 3, 3, 3, 3, 3, 3, 3, 4, 5],
  processes: [2, 2, 2, 2, 3, 3, 4],
  ttls: [100, 300, 1_000, 1_000, 3_000, 10_000],
  extended: 0.5,
  guard: [undefined, undefined, undefined, undefined, undefined, undefined, undefined, false],
  // The last one is beyond `driftFactor`.
  drifts: [...Array.from({ length: 16 }, () => 200e-6), 0.005, 0.0099, 0.0099, 0.03],
  offsets: [5, 5, 100, 2_000, 20_000],
  resources: [['a'], ['a'], ['a'], ['a'], ['b'], ['a', 'b']],
  latencies: [0.5, 0.5, 0.5, 5],
  operations: [3, 6],
  dataAfterCrash: ['kept', 'lost', 'lost', 'stale'],
  tokensAt: [undefined, 0, 0, 0.5, 1],
  fresh: 0.1,
  known: 0.85,
  rolling: 0.15,
  states: 1 / 3,
  sharing: 0.4,
  crowds: 0.15,
  blocking: 0.05,
  nesting: 0.08,
};

/** Two processes with a few locks meet just as many kinds of problems, in a third of the time. */
const SHORT: Profile = {
  ...EVERYTHING,
  mostFaults: 3,
  masters: [3],
  processes: [2, 2, 2, 2, 2, 3],
  operations: [1, 3],
};
const LONG = 1 / 10;

/** Period in which operations begin and faults happen, in milliseconds. */
const BUSY_FOR = 2_500;
/** Time after which all processes are connected to masters that are in use, in milliseconds. */
const CONNECTED = 200;
/** Time of the first request if it comes at once, in milliseconds. */
const FRESH = 20;
/** The uptimes that masters may report at the beginning, in milliseconds. */
const [JUST_STARTED, STARTED_LONG_AGO] = [500, 100_000];

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
  const isFresh = chance.happens(profile.fresh);
  const isKnown = !isFresh && new Chance(seed, 2).happens(profile.known);
  // New masters vote when the longest ttl has passed.
  const settled = isKnown ? CONNECTED : Math.round(maxTtl * 1.03) + CONNECTED;
  const first = isFresh ? FRESH : settled;
  const processes: ProcessPlan[] = Array.from({ length: count }, () => {
    const { rate, offset } = clock();
    return { rate, offset, startsAt: chance.happens(0.85) ? 0 : chance.whole(0, first + BUSY_FOR) };
  });
  const deployment = chance.happens(profile.rolling)
    ? deploy(chance, { processes, first, settled, masters, maxTtl })
    : [];
  const operations = Array.from({ length: chance.whole(...profile.operations) }, () =>
    operation(chance, profile, { processes, first, ttl, maxTtl }),
  );
  const states = statesFor(new Chance(seed, 3), profile, operations);
  const shared = sharingFor(new Chance(seed, 4), profile, states, { processes, first, ttl, maxTtl });
  const crowded = crowdFor(new Chance(seed, 5), profile, shared);
  const nesting = new Chance(seed, 12);
  const nested = nesting.happens(profile.nesting) ? nestingFor(nesting, ttl, crowded) : crowded;
  const faults = Array.from({ length: profile.faults.length > 0 ? chance.whole(0, profile.mostFaults) : 0 }, () => {
    const near = chance.happens(0.6) ? chance.pick(operations).at + chance.fraction() * 30 : undefined;
    const at = near ?? settled + chance.fraction() * BUSY_FOR;
    return fault(chance, profile, Math.round(at), masters, processes.length, ttl);
  });
  return {
    seed,
    options: { ttl, maxTtl, ...(restartGuard !== undefined && { restartGuard }), wait: 1_000 },
    servers: Array.from({ length: masters }, () => ({
      uptime: isFresh ? JUST_STARTED : STARTED_LONG_AGO,
      ...clock(),
      ...(isKnown && { isKnown }),
    })),
    processes,
    operations: functionsFor(new Chance(seed, 9), blockingFor(new Chance(seed, 8), profile, nested)),
    faults: [...deployment, ...faults],
    latency: chance.pick(profile.latencies),
  };
}

const STEPS: readonly StatePlan['steps'][] = [
  ...([['get'], ['get', 'set'], ['get', 'set'], ['get', 'set', 'get'], ['set'], ['set', 'get']] as const),
  ...([
    ['set', 'set', 'get', 'set'],
    ['get', 'get', 'set', 'set', 'get'],
  ] as const),
];

/** Lets the operations use states, with randomness of their own: the rest of a schedule does not depend on it. */
function statesFor(chance: Chance, { states }: Profile, operations: readonly Operation[]): readonly Operation[] {
  if (!chance.happens(states)) return operations;
  return operations.map((operation) => {
    if (operation.resources.length > 1 || chance.happens(0.1)) return operation;
    const state = { at: chance.pick([0, 0, 0.5, 0.9]), steps: chance.pick(STEPS), pause: chance.pick([0, 0, 20, 300]) };
    return { state, ...operation };
  });
}

/** Adds operations, and makes some of all shared. The rest of a schedule does not depend on this randomness either. */
function sharingFor(
  chance: Chance,
  profile: Profile,
  operations: readonly Operation[],
  times: Times,
): readonly Operation[] {
  if (!chance.happens(profile.sharing)) return operations;
  const more = Array.from({ length: chance.whole(0, 4) }, () => ({
    ...operation(chance, profile, times),
    at: chance.pick(operations).at + chance.whole(0, 100),
  }));
  return letShare(chance, [...operations, ...more]);
}

/** Adds short sections of one process, which wait for one another. */
function crowdFor(chance: Chance, { crowds }: Profile, operations: readonly Operation[]): readonly Operation[] {
  const first = chance.pick(operations);
  const isPlain = first.resources.length === 1 && first.permits === undefined && first.mode === undefined;
  if (!chance.happens(crowds) || !isPlain) return operations;
  const crowd = Array.from({ length: chance.whole(2, 8) }, () => ({
    ...withoutState(first),
    ...{ at: first.at + chance.whole(0, 5), wait: chance.pick([300, 5_000]), work: chance.whole(0, 4), minHold: 0 },
    ...{ tokenAt: chance.pick([undefined, undefined, 0.5]), newTtl: undefined },
    ...{ abortAfter: chance.happens(0.2) ? chance.whole(1, 60) : undefined },
  }));
  return [...operations, ...crowd];
}

/** Lets some callers block their event loop: work of the same turn then starts later than its lock was granted. */
function blockingFor(chance: Chance, { blocking }: Profile, operations: readonly Operation[]): readonly Operation[] {
  if (!chance.happens(blocking)) return operations;
  return operations.map((operation) => {
    if (chance.happens(0.5)) return operation;
    const lasts = Math.round(operation.ttl * chance.pick([0.3, 1.2, 1.2]));
    return { ...operation, blocks: { when: chance.pick(['held', 'released'] as const), lasts } };
  });
}

/** In an application, several asynchronous functions may lie between the work and the library. */
function functionsFor(chance: Chance, operations: readonly Operation[]): readonly Operation[] {
  return operations.map((operation) => ({ functions: chance.pick([0, 0, 1, 4, 12]), ...operation }));
}

interface Deployment {
  /** A new process may be added. */
  readonly processes: ProcessPlan[];
  readonly first: number;
  /** When all masters vote, if nothing goes wrong. */
  readonly settled: number;
  readonly masters: number;
  readonly maxTtl: number;
}

/**
 * Gives some processes another order of masters or a larger maxTtl, which no ttl needs yet, and lets one leave while another
 * one starts.
 */
function deploy(chance: Chance, { processes, first, settled, masters, maxTtl }: Deployment): readonly Fault[] {
  const varied = (plan: ProcessPlan): ProcessPlan => ({
    ...plan,
    ...(chance.happens(0.5) && { maxTtl: maxTtl * chance.pick([2, 5, 10]) }),
    order: shuffled(chance, masters),
  });
  processes.forEach((plan, index) => (processes[index] = varied(plan)));
  if (chance.happens(0.3)) return [];
  const at = settled + chance.whole(0, BUSY_FOR);
  const process = chance.whole(0, processes.length - 1);
  const { rate, offset } = processes[process] as ProcessPlan;
  processes.push(varied({ rate, offset, startsAt: Math.max(first, at + chance.whole(-500, 500)) }));
  return [{ kind: chance.happens(0.7) ? 'leave' : 'die', at, process }];
}

function shuffled(chance: Chance, length: number): readonly number[] {
  const left = Array.from({ length }, (_, index) => index);
  return Array.from({ length }, () => left.splice(chance.whole(0, left.length - 1), 1)[0] as number);
}

/** Like {@link generate}, for large numbers of runs: most of the schedules are short. */
export function generateAny(seed: number, faults: readonly FaultKind[] = FAULTS): Schedule {
  const choice = new Chance(seed, 1);
  const profile = choice.happens(LONG) ? EVERYTHING : SHORT;
  const onClients = faults.filter((kind) => ON_CLIENTS.includes(kind));
  return generate(seed, {
    ...profile,
    faults: choice.happens(MASTERS_FINE) && onClients.length > 0 ? onClients : faults,
  });
}

interface Times {
  readonly processes: readonly ProcessPlan[];
  readonly first: number;
  readonly ttl: number;
  readonly maxTtl: number;
}

function operation(chance: Chance, profile: Profile, { processes, first, ttl, maxTtl }: Times): Operation {
  const extend = chance.happens(profile.extended);
  const process = chance.whole(0, processes.length - 1);
  return {
    at: first + Math.round(chance.fraction() * chance.pick([50, 500, BUSY_FOR])),
    process,
    resources: chance.pick(profile.resources),
    ttl: chance.pick([ttl, ttl, ttl, ttl, ttl, ttl, ttl, maxTtl, Math.max(50, ttl / 10)]),
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
  // Durations near the values that the algorithm depends on: the timeout of a master, and the ttl.
  const lasts = Math.round(chance.happens(0.5) ? chance.spread(5, 200) : chance.spread(ttl * 0.2, ttl * 2 + 500));
  switch (kind) {
    case 'crash':
      return {
        ...{ kind, at, server, down: Math.round(chance.spread(10, 2_000)) },
        ...{ data: chance.pick(profile.dataAfterCrash), lag: chance.whole(1, 1_000) },
        ...(chance.happens(0.2) && { full: Math.round(chance.spread(20, 1_000)) }),
      };
    case 'flush':
    case 'evict':
    case 'unmark':
    case 'scriptFlush':
      return { kind, at, server };
    case 'loseAll':
      return { kind, at, within: chance.whole(0, 100), down: Math.round(chance.spread(10, 1_000)) };
    case 'spare': {
      const connections = chance.pick(['kept', 'broken', 'broken', 'broken'] as const);
      const data = chance.pick(['empty', 'stale'] as const);
      const ahead = chance.pick(AHEAD);
      return { kind, at, server, lag: chance.whole(1, 1_000), connections, data, ahead };
    }
    case 'twin':
      return { kind, at, server, other: (server + 1) % servers, lasts };
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
    case 'late': {
      const direction = chance.pick(['out', 'in', 'both'] as const);
      return { kind, at, server, process, lasts: Math.round(chance.spread(300, 10_000)), direction };
    }
    case 'orphan':
      return { kind, at, server, process, lasts: Math.round(chance.spread(20, 1_000 + 2 * ttl)) };
    case 'halfOpen': {
      const all = Array.from({ length: servers }, (_, index) => index);
      return { kind, at, process, servers: chance.happens(0.5) ? all : [server] };
    }
    case 'stumble': {
      const by = Math.round(chance.happens(0.5) ? chance.spread(15, 300) : chance.spread(1_000, 1_000 + 3 * ttl));
      return { kind, at, process, by, lasts: chance.happens(0.5) ? 2 * by : 0 };
    }
    case 'pause':
    case 'suspend':
    case 'stun':
      return { kind, at, process, lasts };
    case 'slew':
      return { kind, at, process, lasts: lasts * 3, by: chance.pick([0.0005, 0.02, 0.083]) };
    case 'wallJump':
      return { kind, at, process, by: jump(chance, ttl) };
    case 'die':
    case 'leave':
      return { kind, at, process };
  }
}

function jump(chance: Chance, ttl: number): number {
  const size = Math.round(chance.pick([chance.spread(1, 50), chance.spread(2_000, 2_000 + 2 * ttl)]));
  return chance.happens(0.5) ? size : -size;
}
