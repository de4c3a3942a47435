import type { QuorumCall } from './quorum-call.js';
import type { WakeReason } from './waiter.js';

/**
 * How an attempt contacts the masters.
 *
 * - `all`: all masters at once
 * - `home`: the home master, and the others only if it grants
 * - `reservation`: all masters at once, because the home master has reserved the key for this process
 */
export type Step = 'all' | 'home' | 'reservation';

/**
 * How an attempt failed.
 *
 * - `refused`: another holder has the lock
 * - `split`: some masters granted, others refused
 * - `unavailable`: too few masters can grant
 * - `late`: a quorum granted, but the validity had ended by then
 */
export type Failure = 'refused' | 'split' | 'unavailable' | 'late';

/** What follows a failed attempt. */
interface Transition {
  /** What the retry schedule learns about the home master. */
  readonly schedule?: 'refusal' | 'failure' | undefined;
  /** The next attempt, made at once, or a pause before it. */
  readonly next: Step | 'pause';
  /** What follows instead while the attempts on the home master fail: it is not contacted again without a pause. */
  readonly whileFailing?: 'pause';
}

const AFTER_HOME: Readonly<Record<Failure, Transition>> = {
  refused: { schedule: 'refusal', next: 'pause' },
  split: { schedule: 'failure', next: 'pause' },
  unavailable: { schedule: 'failure', next: 'all' },
  late: { schedule: 'failure', next: 'pause' },
};

/** From each kind of attempt and each failure to what follows. Protocol 5.6. */
const TRANSITIONS: Readonly<Record<Step, Readonly<Record<Failure, Transition>>>> = {
  all: {
    refused: { next: 'home', whileFailing: 'pause' },
    split: { next: 'home', whileFailing: 'pause' },
    unavailable: { schedule: 'failure', next: 'pause' },
    late: { schedule: 'failure', next: 'pause' },
  },
  home: AFTER_HOME,
  reservation: AFTER_HOME,
};

/** @param isFailing whether the last attempts gave no useful answer of the home master */
export function transitionAfter(step: Step, failure: Failure, isFailing: boolean): Omit<Transition, 'whileFailing'> {
  const { schedule, next, whileFailing } = TRANSITIONS[step][failure];
  return { schedule, next: isFailing && whileFailing ? whileFailing : next };
}

/** Why an attempt failed, from the result of its last quorum call. */
export function failureOf({ outcome, isSplit }: Pick<QuorumCall, 'outcome' | 'isSplit'>): Failure {
  if (outcome === 'held') return isSplit ? 'split' : 'refused';
  return outcome === 'granted' ? 'late' : 'unavailable';
}

/** A pause, and the failed attempt before it. */
export interface Pause {
  readonly step: Step;
  readonly failure: Failure;
  /** Why the waiter was woken; `undefined` if it was not. */
  readonly reason: WakeReason | undefined;
  readonly hasOneKey: boolean;
  /** Milliseconds until the keys expire, if they are not released before; `Infinity` if that is not known. */
  readonly expiry: number;
  /** The longest that the pause could last, in milliseconds. */
  readonly poll: number;
  /** Whether it is time for a poll of all masters. */
  readonly isWide: boolean;
}

/** The kind of the attempt after a pause. */
export function stepAfter({ step, failure, reason, hasOneKey, expiry, poll, isWide }: Pause): Step {
  // With several keys, others may still be held.
  if (reason === 'next' && hasOneKey) return 'reservation';
  if (step === 'all' || reason !== undefined || failure === 'split' || expiry <= poll) return 'home';
  // No expiry is known, so the key on the home master may not be one of ours, which always expire: all masters vote on it.
  return isWide || expiry === Infinity ? 'all' : 'home';
}
