import type { Random } from '../redlock/holder.js';
import type { QuorumCall } from '../redlock/quorum.js';
import type { WakeCause } from '../operate/observer.js';

// In milliseconds, at most: notifications can be lost, so a waiter also polls.
const FIRST_POLL = 750;
// In milliseconds: polls become rarer, but an entry in a queue lasts only 5 s and must be renewed before.
const RAREST_POLL = 4_000;
// As a share of the bound of a poll.
const LEAST = 1 / 3;
// Every poll asks the home master. A quorum may disagree with it, so one poll in this many asks all masters.
const ALL_MASTERS_EVERY = 8;
// After a split vote or a failure, a retry comes at a random moment within this many milliseconds, doubled for each
// failure in a row.
export const RETRY_WITHIN = 20;

// When a waiter polls, and which masters. Random, so that waiters that began together do not poll together.
export class RetrySchedule {
  // Consecutive attempts whose answer from the home master was useless: there was none, or other masters disagreed.
  private failures = 0;
  // Consecutive polls without a notification in between.
  private quiet = 0;

  constructor(private readonly random: Random) {}

  get isFailing(): boolean {
    return this.failures > 0;
  }

  noteFailure(): void {
    this.failures++;
  }

  noteRefusal(): void {
    this.failures = 0;
  }

  noteNotification(): void {
    this.quiet = 0;
  }

  noteQuiet(): void {
    this.quiet++;
  }

  // Milliseconds. Polls stay frequent unless notifications are known to arrive (`called`).
  delay(called: boolean): number {
    const chance = this.random.fraction();
    // Protocol 5.6
    // Back off before the next attempt: a home master that fails may do so at once, again and again.
    if (this.failures > 0) return Math.max(1, chance * Math.min(FIRST_POLL, RETRY_WITHIN * 2 ** this.failures));
    // Protocol 5.5
    const most = called ? Math.min(RAREST_POLL, FIRST_POLL * 2 ** this.quiet) : FIRST_POLL;
    return most * (LEAST + chance * (1 - LEAST));
  }

  isWide(called: boolean): boolean {
    // Protocol 5.5
    return !called || this.quiet % ALL_MASTERS_EVERY === 0;
  }
}

// `home`: the home master, and the others only if it grants.
// `reservation`: all at once, because the home master has reserved the key for this process.
export type Step = 'all' | 'home' | 'reservation';

// `split`: some masters granted, others refused. `late`: a quorum granted, but the validity had ended by then.
export type Failure = 'refused' | 'split' | 'unavailable' | 'late';

interface Transition {
  // What the retry schedule learns about the home master.
  readonly schedule?: 'refusal' | 'failure' | undefined;
  // Made at once, or after a pause.
  readonly next: Step | 'pause';
  // While the attempts on the home master fail, it is not contacted again without a pause.
  readonly whileFailing?: 'pause';
}

const AFTER_HOME: Readonly<Record<Failure, Transition>> = {
  refused: { schedule: 'refusal', next: 'pause' },
  split: { schedule: 'failure', next: 'pause' },
  unavailable: { schedule: 'failure', next: 'all' },
  late: { schedule: 'failure', next: 'pause' },
};

// Protocol 5.6
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

export function transitionAfter(step: Step, failure: Failure, isFailing: boolean): Omit<Transition, 'whileFailing'> {
  const { schedule, next, whileFailing } = TRANSITIONS[step][failure];
  return { schedule, next: isFailing && whileFailing ? whileFailing : next };
}

export function failureOf({ outcome, isSplit }: Pick<QuorumCall, 'outcome' | 'isSplit'>): Failure {
  if (outcome === 'held') return isSplit ? 'split' : 'refused';
  return outcome === 'granted' ? 'late' : 'unavailable';
}

export interface Pause {
  readonly step: Step;
  readonly failure: Failure;
  // `undefined` if the waiter was not woken.
  readonly cause: WakeCause | undefined;
  readonly hasOneKey: boolean;
  // Milliseconds until the keys expire, if they are not released before; `Infinity` if that is not known.
  readonly expiry: number;
  // The longest that the pause could last, in milliseconds.
  readonly poll: number;
  // It is time for a poll of all masters.
  readonly isWide: boolean;
}

export function stepAfter({ step, failure, cause, hasOneKey, expiry, poll, isWide }: Pause): Step {
  // With several keys, others may still be held.
  if (cause === 'reserved' && hasOneKey) return 'reservation';
  if (step === 'all' || cause !== undefined || failure === 'split' || expiry <= poll) return 'home';
  // No expiry is known, so the key on the home master may not be one of ours, which always expire: all masters vote on it.
  return isWide || expiry === Infinity ? 'all' : 'home';
}
