import { Chance } from './engine/chance.js';
import type { ClockPlan, Fault, FaultKind, Operation, ProcessPlan, Schedule } from './schedule.js';

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
  /** Share of the schedules in which masters were started a moment ago and have never voted. */
  readonly fresh: number;
  /** Share of the others in which the masters have been in use for long. The rest begins when new masters vote. */
  readonly known: number;
  /** Share of those in which processes differ in their options, and are replaced by others while locks are held. */
  readonly rolling: number;
  /** Share of those in which masters keep whatever they have acknowledged. */
  readonly durable: number;
  /** After what share of the work a fencing token is asked for, if it is. */
  readonly tokensAt: readonly (number | undefined)[];
}

export const FAULTS: readonly FaultKind[] = [
  ...(['crash', 'crash', 'promote', 'flush', 'evict', 'scriptFlush', 'oom', 'readonly', 'hang', 'serverJump'] as const),
  ...(['partition', 'partition', 'cut', 'cut', 'cut', 'slow', 'pause', 'pause', 'suspend', 'wallJump', 'die'] as const),
  ...(['durableRestart', 'lateBoot', 'loseAll', 'spare', 'failback', 'attachReplica', 'twin', 'smallStep'] as const),
  ...(['clone', 'rollback', 'clientLag', 'slew', 'leave'] as const),
];
/** They happen to one client, and must cost no other its lock. */
const ON_CLIENTS: readonly FaultKind[] = ['pause', 'suspend', 'clientLag', 'slew', 'wallJump', 'die', 'leave'];
/** Share of the schedules in which nothing happens to any master. */
const MASTERS_FINE = 1 / 10;

export const EVERYTHING: Profile = {
  faults: FAULTS,
  mostFaults: 5,
  masters: [1, 3, 3, 3, 3, 3, 3, 3, 4, 5],
  processes: [2, 2, 2, 2, 3, 3, 4],
  ttls: [100, 300, 1_000, 1_000, 3_000, 10_000],
  extended: 0.5,
  guard: [undefined, undefined, undefined, undefined, undefined, undefined, undefined, false],
  // Odd clocks are looked into again and again: a few of these schedules take as long as hundreds of others.
  drifts: [...Array.from({ length: 28 }, () => 200e-6), 0.008, 0.03],
  offsets: [5, 5, 100, 2_000, 20_000],
  resources: [['a'], ['a'], ['a'], ['a'], ['b'], ['a', 'b']],
  latencies: [0.5, 0.5, 0.5, 5],
  operations: [3, 6],
  dataAfterCrash: ['kept', 'lost', 'lost', 'stale'],
  tokensAt: [undefined, 0, 0, 0.5, 1],
  fresh: 0.1,
  // Half of all events happen before new masters vote, and few of them differ from one schedule to the next.
  known: 0.85,
  rolling: 0.15,
  durable: 0.05,
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
/** New masters vote by then. */
const SETTLED = 3_300;
/** All processes are connected to masters that have been in use by then. */
const CONNECTED = 200;
/** The same where they are asked at once. */
const FRESH = 20;
/** How often masters that have just been started say for how long they run, in milliseconds. */
const [JUST_STARTED, STARTED_LONG_AGO] = [500, 100_000];

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
  const isFresh = chance.happens(profile.fresh);
  const isDurable = chance.happens(profile.durable);
  const isKnown = !isFresh && new Chance(seed, 2).happens(profile.known);
  const settled = isKnown ? CONNECTED : SETTLED;
  const first = isFresh ? FRESH : settled;
  const processes: ProcessPlan[] = Array.from({ length: count }, () => ({
    ...clock(),
    startsAt: chance.happens(0.85) ? 0 : chance.whole(0, first + BUSY_FOR),
  }));
  const deployment = chance.happens(profile.rolling)
    ? deploy(chance, { processes, first, settled, masters, maxTtl })
    : [];
  const operations = Array.from({ length: chance.whole(...profile.operations) }, () =>
    operation(chance, profile, { processes, first, ttl, maxTtl }),
  );
  const faults = Array.from({ length: chance.whole(0, profile.mostFaults) }, () => {
    const near = chance.happens(0.6) ? chance.pick(operations).at + chance.fraction() * 30 : undefined;
    const at = near ?? settled + chance.fraction() * BUSY_FOR;
    return fault(chance, profile, Math.round(at), masters, processes.length, ttl);
  });
  return {
    seed,
    options: { ttl, maxTtl, ...(restartGuard !== undefined && { restartGuard }), wait: 1_000 },
    ...(isDurable && { durable: true }),
    servers: Array.from({ length: masters }, () => ({
      ...{ ...clock(), uptime: isFresh ? JUST_STARTED : STARTED_LONG_AGO },
      ...(isKnown && { isKnown }),
    })),
    processes,
    operations,
    faults: [...deployment, ...faults],
    latency: chance.pick(profile.latencies),
  };
}

interface Deployment {
  /** A new one may be added. */
  readonly processes: ProcessPlan[];
  readonly first: number;
  /** When all masters vote, if nothing goes wrong. */
  readonly settled: number;
  readonly masters: number;
  readonly maxTtl: number;
}

/** Some processes have a larger maxTtl, or another order of their masters; one leaves while another one comes. */
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

/** Like {@link generate}, for a mass of runs: most of them are short. */
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
  /** When the first lock is asked for. */
  readonly first: number;
  readonly ttl: number;
  readonly maxTtl: number;
}

function operation(chance: Chance, profile: Profile, { processes, first, ttl, maxTtl }: Times): Operation {
  const extend = chance.happens(profile.extended);
  const process = chance.whole(0, processes.length - 1);
  const longest = processes[process]?.maxTtl ?? maxTtl;
  return {
    at: first + Math.round(chance.fraction() * chance.pick([50, 500, BUSY_FOR])),
    process,
    resources: chance.pick(profile.resources),
    ttl: chance.pick([ttl, ttl, ttl, ttl, ttl, ttl, ttl, longest, maxTtl, Math.max(50, ttl / 10)]),
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
    case 'attachReplica':
      return { kind, at, server };
    case 'durableRestart':
    case 'lateBoot':
      return { kind, at, server, down: Math.round(chance.spread(10, 2_000)) };
    case 'loseAll':
      return { kind, at, within: chance.whole(0, 100), down: Math.round(chance.spread(10, 1_000)) };
    case 'spare': {
      const connections = chance.pick(['kept', 'broken'] as const);
      return { kind, at, server, lag: chance.whole(1, 1_000), connections, data: chance.pick(['empty', 'stale']) };
    }
    case 'failback': {
      const connections = chance.pick(['kept', 'broken', 'broken'] as const);
      return { kind, at, server, lag: chance.whole(1, 300), connections, lasts: Math.round(chance.spread(10, 3_000)) };
    }
    case 'clone':
    case 'rollback':
      return { kind, at, server, lag: chance.whole(1, 1_000) };
    case 'twin':
      return { kind, at, server, other: (server + 1) % servers, lasts };
    case 'oom':
    case 'readonly':
    case 'hang':
      return { kind, at, server, lasts };
    case 'serverJump':
      return { kind, at, server, by: jump(chance, ttl) };
    case 'smallStep':
      return { kind, at, server, by: Math.round(chance.spread(10, 500)) * chance.pick([1, 1, 1, -1]) };
    case 'partition':
      return { kind, at, server, process, lasts, direction: chance.pick(['out', 'in', 'both'] as const) };
    case 'cut':
      return { kind, at, server, process, cut: chance.pick(['now', 'request', 'reply'] as const) };
    case 'slow':
      return { kind, at, server, process, lasts, latency: chance.spread(2, 80) };
    case 'pause':
    case 'suspend':
    case 'clientLag':
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
