import { EVERYTHING, generate, type Profile } from '../generator.js';
import type { Schedule } from '../schedule.js';
import type { ModelFault } from '../server/operations.js';
import { farWaiter } from '../far-waiter.js';
import { duplicateToken, missedValue, restartedWithoutMemory } from './counter-examples.js';

/** Schedules in which a mutant has an effect more often than in general ones. */
interface MutantProfile {
  readonly profile: Profile;
  readonly schedule?: (seed: number) => Schedule;
  /** The fault in the model of a script, for a mutant of the script. */
  readonly modelFaults?: ReadonlySet<ModelFault>;
}

const GUARDED: Profile = {
  ...{ ...EVERYTHING, masters: [3], guard: [undefined], drifts: [200e-6], offsets: [5] },
  ...{
    fresh: 0,
    known: 0,
    rolling: 0,
    states: 0,
    sharing: 0,
    crowds: 0,
    blocking: 0,
    nesting: 0,
  },
};
const CROWDED: Profile = { ...GUARDED, processes: [3, 4], resources: [['a']] };
/** Calls whose work asks for more, and calls for several resources. */
const NESTED: Profile = { ...CROWDED, processes: [2], known: 1, mostFaults: 0, nesting: 1 };
const SLOW: Profile = { ...CROWDED, faults: ['slow', 'partition', 'hang', 'pause'], latencies: [20] };

/** Locks that overlap, with counters that differ between masters because all clocks are behind them. */
const OVERLAPPING: Profile = {
  ...{ ...CROWDED, faults: ['evict', 'evict', 'evict', 'evict', 'partition', 'hang', 'cut'], mostFaults: 30 },
  ...{
    operations: [10, 16],
    offsets: [20_000],
    ttls: [1_000],
    latencies: [2, 10],
    extended: 0,
    tokensAt: [0, 0, 0.1, 0.5],
    dataAfterCrash: ['kept'],
    // With a guard, new masters would not vote during most of the schedule.
    guard: [false],
  },
};

/** Masters that lose the keys of holders, which extend them. */
const EVICTED: Profile = {
  ...{
    ...OVERLAPPING,
    faults: ['evict', 'evict', 'evict', 'late', 'partition', 'hang'],
    extended: 1,
    tokensAt: [undefined],
  },
  ...{ ttls: [300, 1_000], known: 1 },
};

/** Several holders in turn, whose wall clocks differ, use the state of one resource. */
const STATES: Profile = {
  ...{ ...CROWDED, faults: ['cut', 'partition', 'hang', 'pause'], states: 1, known: 1, offsets: [20_000] },
  ...{ ttls: [300, 1_000], operations: [6, 12], mostFaults: 8, tokensAt: [undefined], extended: 0 },
};
const LOST_STATES: Profile = { ...STATES, faults: ['crash', 'flush', 'cut', 'partition'] };

/** Processes that share some locks, and hold others alone. */
const SHARED: Profile = {
  ...{ ...CROWDED, sharing: 1, known: 1, ttls: [300, 1_000, 3_000], operations: [4, 8], mostFaults: 6 },
  ...{ faults: ['cut', 'partition', 'hang', 'pause'] },
};
const UNDISTURBED: Profile = { ...SHARED, mostFaults: 0, extended: 1, ttls: [1_000, 3_000] };
/** Extensions arrive when their holders have lost the lock. */
const DELAYED: Profile = {
  ...{ ...SHARED, faults: ['late', 'slow', 'partition', 'crash'], mostFaults: 12, processes: [2], operations: [8, 14] },
  ...{ extended: 1, ttls: [100, 300], latencies: [5] },
};

/** Masters come back with data of an earlier run. */
const RESTARTED: Profile = { ...CROWDED, known: 1, faults: ['crash', 'cut'], dataAfterCrash: ['stale'], mostFaults: 6 };
/** Several addresses lead to one server. */
const TWINS: Profile = { ...CROWDED, known: 1, faults: ['twin', 'hang', 'slow'], mostFaults: 8, operations: [6, 10] };

function of(fault: ModelFault, profile: Profile): MutantProfile {
  return { profile, modelFaults: new Set([fault]) };
}

export const PROFILES: Readonly<Record<string, MutantProfile>> = {
  'start time taken after replies': { profile: { ...SLOW, ttls: [300, 1_000] } },
  'elapsed ignored': { profile: SLOW },
  'drift ignored': { profile: { ...GUARDED, faults: ['hang'], drifts: [0.009], ttls: [1_000, 3_000] } },
  'quorum minus one': { profile: { ...CROWDED, faults: ['partition', 'cut', 'hang'] } },
  'unconditional delete': { profile: SLOW },
  'release only to granters': { profile: { ...SLOW, faults: ['hang', 'slow', 'partition'], ttls: [10_000] } },
  'extension without owner check': {
    profile: {
      ...{ ...CROWDED, faults: ['partition', 'partition', 'crash'], mostFaults: 10, operations: [8, 14] },
      ...{ extended: 1, ttls: [100], latencies: [5] },
    },
  },
  'healed masters counted': { profile: EVICTED },
  'each extension heals': { profile: EVICTED },
  'heal after the deadline': {
    profile: { ...CROWDED, faults: ['hang', 'pause', 'suspend', 'partition'], extended: 1 },
  },
  'quarantined votes counted': { profile: { ...CROWDED, faults: ['crash', 'flush'] } },
  'wall clock only': { profile: { ...CROWDED, faults: ['wallJump'] } },
  'monotonic only across a suspend': { profile: { ...CROWDED, faults: ['suspend'], ttls: [100, 300] } },
  'draw for any holder': { profile: OVERLAPPING },
  'larger draws not adopted': { profile: OVERLAPPING, schedule: duplicateToken },
  'token of one master': { profile: OVERLAPPING },
  'floor ignored': {
    profile: { ...CROWDED, faults: ['crash', 'flush'], mostFaults: 10, operations: [8, 14], tokensAt: [0] },
    modelFaults: new Set(['floor-ignored']),
  },
  'nothing drawn': { profile: { ...OVERLAPPING, offsets: [20_000], tokensAt: [0] } },
  'notification trusted without the timer': { profile: { ...CROWDED, faults: ['cut', 'pause', 'crash'] } },
  'token reused across attempts': {
    profile: { ...SLOW, faults: ['scriptFlush', 'slow', 'hang'], mostFaults: 8, guard: [false] },
  },
  'run not compared': of('run-not-compared', RESTARTED),
  'missing marker taken for one': of('missing-marker-taken-for-one', { ...CROWDED, faults: ['flush', 'unmark'] }),
  'marker not written': of('marker-not-written', { ...CROWDED, faults: ['flush', 'unmark'] }),
  'marker written again': of('marker-written-again', { ...CROWDED, faults: ['cut'] }),
  'wait too short': of('wait-too-short', { ...CROWDED, faults: ['crash', 'flush'] }),
  'quarantine not kept': of('quarantine-not-kept', { ...CROWDED, faults: ['crash', 'flush'] }),
  'gate open': of('gate-open', { ...CROWDED, faults: ['crash', 'flush'] }),
  'other calls before the first': { profile: RESTARTED },
  'error taken for the answer of the first call': { profile: RESTARTED, schedule: restartedWithoutMemory },
  'later twin not excluded': { profile: TWINS },
  'nothing released': { profile: CROWDED },
  'sent again after its release': {
    profile: { ...SLOW, faults: ['scriptFlush', 'slow', 'hang'], ttls: [10_000], mostFaults: 8 },
  },
  'last come, first served': { profile: { ...CROWDED, processes: [2] } },
  'a nested call joins the queue': { profile: NESTED },
  'timer of a lock kept': { profile: { ...GUARDED, ttls: [10_000] } },
  'listener of a caller kept': { profile: GUARDED },
  'budget counted from each attempt': { profile: CROWDED },
  'state of lost data counted': { profile: LOST_STATES, schedule: missedValue },
  'lost state read from a quorum': { profile: LOST_STATES },
  'oldest state read': { profile: LOST_STATES },
  'smaller claims open the state': { profile: { ...STATES, faults: ['leave'] } },
  'reservation ignores distance': { profile: GUARDED, schedule: farWaiter },
  'shared beside an exclusive holder': { profile: SHARED },
  'exclusive beside shared holders': { profile: SHARED },
  'exclusive extension over shared holders': { profile: DELAYED },
  'shared extension over an exclusive holder': { profile: DELAYED },
  'shared key deleted': { profile: UNDISTURBED },
  'expiry of a shared key only grows': { profile: UNDISTURBED },
  'wake chain stops after one': { profile: UNDISTURBED },
  'writer key not looked at': { profile: UNDISTURBED },
  'work begins among other reactions': {
    profile: { ...UNDISTURBED, blocking: 1, ttls: [100, 300], processes: [2], operations: [10, 20] },
  },
  'writer key left behind': { profile: UNDISTURBED },
  'writer key on one master': { profile: UNDISTURBED },
};

export function scheduleFor(mutant: string, seed: number): Schedule {
  const { schedule, profile } = PROFILES[mutant] ?? {};
  return schedule?.(seed) ?? generate(seed, profile);
}
