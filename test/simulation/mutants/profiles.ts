import { EVERYTHING, generate, type Profile } from '../generator.js';
import type { Schedule } from '../schedule.js';
import type { ModelFault } from '../server/operations.js';
import { duplicateToken } from './duplicate-token.js';
import { lostPromise, openedInQuarantine } from './lost-promises.js';
import { lostTogether } from './lost-together.js';
import { restartedInTurn } from './restarted-in-turn.js';
import { standstillWithoutQuorum } from './standstill-without-quorum.js';

/** Schedules in which a mutant has an effect more often than in general ones. */
interface MutantProfile {
  readonly profile: Profile;
  /** Replaces the schedules of the profile. */
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
    durable: 0,
    synced: 0,
    states: 0,
    sharing: 0,
    crowds: 0,
    blocking: 0,
    nesting: 0,
  },
};
const CROWDED: Profile = { ...GUARDED, processes: [3, 4], resources: [['a']] };
/** Short sections of one process, one after the other. */
const QUEUED: Profile = { ...CROWDED, crowds: 1, known: 1, mostFaults: 0 };
/** Calls whose work asks for more, and calls for several resources. */
const NESTED: Profile = { ...CROWDED, processes: [2], known: 1, mostFaults: 0, nesting: 1 };
/** The same, in which the work blocks its process for longer than a lock lasts. */
const BLOCKED: Profile = { ...QUEUED, blocking: 1, ttls: [100, 300] };
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

/** Several holders in turn, whose wall clocks differ, use the state of one resource. */
const STATES: Profile = {
  ...{ ...CROWDED, faults: ['cut', 'partition', 'hang', 'pause'], states: 1, known: 1, offsets: [20_000] },
  ...{ ttls: [300, 1_000], operations: [6, 12], mostFaults: 8, tokensAt: [undefined], extended: 0 },
};
const LOST_STATES: Profile = { ...STATES, faults: ['crash', 'flush', 'promote', 'cut', 'partition'] };

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

/** Profiles by the name of the mutant. */
export const PROFILES: Readonly<Record<string, MutantProfile>> = {
  'work begins without a look at the lock': { profile: BLOCKED },
  'work begins unless a loss was reported': { profile: BLOCKED },
  'lock passed on with its token': { profile: QUEUED },
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
  'heal after the deadline': {
    profile: { ...CROWDED, faults: ['hang', 'pause', 'suspend', 'partition'], extended: 1 },
  },
  'quarantined votes counted': { profile: { ...CROWDED, faults: ['crash', 'promote', 'flush'] } },
  'NOSCRIPT taken as reload': { profile: { ...CROWDED, faults: ['promote'], ttls: [1_000, 3_000] } },
  'wall clock only': { profile: { ...CROWDED, faults: ['wallJump'] } },
  'monotonic only across a suspend': { profile: { ...CROWDED, faults: ['suspend'], ttls: [100, 300] } },
  'clocks not compared': { profile: { ...CROWDED, faults: ['wallJump'] } },
  'a minority ends a doubt': {
    profile: {
      ...CROWDED,
      ...{ faults: ['suspend', 'partition', 'hang'], mostFaults: 10, extended: 1, ttls: [100, 300], guard: [false] },
    },
  },
  'draw for any holder': { profile: OVERLAPPING },
  'larger draws not adopted': { profile: OVERLAPPING, schedule: duplicateToken },
  'token of one master': { profile: OVERLAPPING },
  'floor ignored': {
    profile: { ...CROWDED, faults: ['crash', 'flush'], mostFaults: 10, operations: [8, 14], tokensAt: [0] },
  },
  'nothing drawn': { profile: { ...OVERLAPPING, offsets: [20_000], tokensAt: [0] } },
  'notification trusted without the timer': { profile: { ...CROWDED, faults: ['cut', 'pause', 'crash'] } },
  'token reused across attempts': {
    profile: { ...SLOW, faults: ['scriptFlush', 'slow', 'hang'], mostFaults: 8, guard: [false] },
  },
  'marker not looked at': {
    profile: { ...CROWDED, faults: ['flush'] },
    modelFaults: new Set(['marker-is-ignored']),
  },
  'clock of a server not looked at': { profile: { ...CROWDED, faults: ['serverJump'] } },
  'clocks of two servers compared': { profile: { ...CROWDED, known: 1, faults: ['detour'], ttls: [10_000] } },
  'quarantine ended by the wall clock': {
    profile: { ...CROWDED, faults: ['wallJump', 'crash', 'promote'], mostFaults: 8 },
  },
  'quarantine too short': { profile: { ...CROWDED, faults: ['crash', 'promote', 'flush'], mostFaults: 6 } },
  'another run taken for known data': {
    profile: { ...CROWDED, faults: ['crash', 'promote'], dataAfterCrash: ['stale'] },
  },
  'lost data taken for known data': { profile: { ...CROWDED, faults: ['crash'], dataAfterCrash: ['lost'] } },
  'a new marker votes at once': { profile: { ...CROWDED, faults: ['crash', 'flush'] } },
  'durability inferred': { profile: { ...GUARDED, known: 1, synced: 1, faults: ['crash'], dataAfterCrash: ['stale'] } },
  'promoted replica of a declared master trusted': {
    profile: {
      ...GUARDED,
      durable: 1,
      known: 1,
      faults: ['promote'],
      mostFaults: 1,
      ttls: [1_000, 3_000],
      extended: 0.5,
    },
  },
  'no objection to new masters': { profile: GUARDED, schedule: restartedInTurn },
  'no veto': { profile: GUARDED, schedule: lostTogether },
  'early vote too early': { profile: GUARDED, schedule: lostTogether },
  'nothing released': { profile: CROWDED },
  'sent again after its release': {
    profile: { ...SLOW, faults: ['scriptFlush', 'slow', 'hang'], ttls: [10_000], mostFaults: 8 },
  },
  'an extension does not withdraw the acquisition': {
    profile: {
      ...{ ...SLOW, faults: ['flush', 'scriptFlush', 'slow', 'hang', 'partition'], ttls: [1_000, 10_000] },
      ...{ mostFaults: 10, extended: 1, guard: [false] },
    },
  },
  'last come, first served': { profile: { ...CROWDED, processes: [2] } },
  'a nested call waits for its own chain': { profile: NESTED },
  'parts kept from a nested call': { profile: { ...NESTED, processes: [1] } },
  'nested calls are judged once': { profile: NESTED },
  'a first attempt counts as holding': { profile: CROWDED },
  'ended wait not blamed': { profile: CROWDED },
  'timer of a lock kept': { profile: { ...GUARDED, ttls: [10_000] } },
  'listener of a caller kept': { profile: GUARDED },
  'budget counted from each attempt': { profile: CROWDED },
  'state of lost data counted': { profile: { ...LOST_STATES, dataAfterCrash: ['stale'] } },
  'masters that lost the state counted': { profile: LOST_STATES },
  'generation of a state not compared': {
    ...{ profile: LOST_STATES, schedule: lostPromise },
    modelFaults: new Set(['generation-is-ignored']),
  },
  'quarantined masters open the state': { profile: LOST_STATES, schedule: openedInQuarantine },
  'ballots compared by id': { profile: { ...STATES, faults: ['leave'] } },
  'smaller ballots open the state': { profile: { ...STATES, faults: ['leave'] } },
  'shared beside an exclusive holder': { profile: SHARED },
  'exclusive beside shared holders': { profile: SHARED },
  'exclusive extension over shared holders': { profile: DELAYED },
  'shared extension over an exclusive holder': { profile: DELAYED },
  'shared key deleted': { profile: UNDISTURBED },
  'expiry of a shared key only grows': { profile: UNDISTURBED },
  'wake chain stops after one': { profile: UNDISTURBED },
  'barriers not looked at': { profile: UNDISTURBED },
  'work begins among other reactions': {
    profile: { ...UNDISTURBED, blocking: 1, ttls: [100, 300], processes: [2], operations: [10, 20] },
  },
  'a step that too few masters can judge is forgotten': { profile: GUARDED, schedule: standstillWithoutQuorum },
  'a second address of a master judges its clock': {
    profile: { ...CROWDED, known: 1, faults: ['twin', 'serverJump'], ttls: [10_000], operations: [8, 14] },
  },
  'a standstill is not subtracted': {
    profile: { ...CROWDED, known: 1, faults: ['clientLag'], mostFaults: 6, ttls: [10_000], operations: [8, 14] },
  },
  'barrier on one master': { profile: UNDISTURBED },
};

/** The schedule that a seed gives for a mutant. */
export function scheduleFor(mutant: string, seed: number): Schedule {
  const { schedule, profile } = PROFILES[mutant] ?? {};
  return schedule?.(seed) ?? generate(seed, profile);
}
