import type { Duration } from '../settings/duration.js';
import {
  LockError,
  type LockLostCause,
  type MasterReport,
  QuorumUnavailableError,
  RedlockConfigError,
  formatReports,
} from '../errors.js';
import { duration, oneOf, optional, readOptions, type TableOf } from '../settings/table.js';
import {
  type ClockReading,
  DAY,
  DEFAULT_STATE_LIFE,
  isCounted,
  jsonFrom,
  type Opening,
  type StateFailure,
  type StateRegister,
  type StateValue,
  valueFrom,
} from './state-register.js';
import { showNames } from '../display.js';
import { type Clock, elapsedSince } from '../clock.js';
import { quorumOf } from '../acquire/quorum-call.js';
import { beginningOf } from './state-entry.js';

/** Options of `lock.state.get`. */
export interface StateReadOptions {
  /**
   * What happens if too many masters have lost their data since the value was set. `'throw'`: the call fails with a
   * `StateUncertainError`. `'newest'`: it gives the newest value that is left, which may be older than the last one, if
   * all masters answer.
   * @default 'throw'
   */
  onUncertain?: 'throw' | 'newest';
}

/** Options of `lock.state.set`. */
export interface StateWriteOptions extends StateReadOptions {
  /**
   * How long the value is kept if it is neither read nor set again, in milliseconds or as a string such as `'48h'`; at
   * least two days. It counts as gone a day earlier, because the masters do not delete it at the same moment. A later
   * `set` can make it longer, and not shorter.
   * @default 30 days
   */
  expireAfter?: Duration;
}

const OPTIONS = {
  onUncertain: optional(oneOf('throw', 'newest'), 'throw'),
  // At least two days, at most 10,000.
  expireAfter: optional(duration(2 * DAY, undefined, 10_000 * DAY), DEFAULT_STATE_LIFE),
} satisfies TableOf<StateWriteOptions>;

/**
 * Too many masters have lost their data since the state was written: the last value may be lost. A newer value than the
 * survivor may have been acknowledged.
 */
export class StateUncertainError extends LockError {
  readonly code = 'LOCK_STATE_UNCERTAIN';
  readonly statusCode = 503;

  constructor(
    resources: readonly string[],
    answers: readonly MasterReport[],
    /** The newest value that is left; `undefined` if there is none. */
    readonly survivor: unknown,
    advice = "read it with { onUncertain: 'newest' } to go on with the newest value that is left",
  ) {
    super(
      `the state of ${showNames(resources)} is uncertain, because masters have lost their data since it was written: ` +
        `${advice}${formatReports(answers)}`,
      resources,
      answers,
    );
  }
}

// What too few masters have answered is repeated for so many times `masterTimeout`: longer than a process stalls.
const PATIENCE = 10;

interface StateHolder {
  readonly resources: readonly string[];
  readonly isShared?: boolean;
  // Absent for a lock.
  readonly slot?: number | undefined;
  // Milliseconds for which the lock can be relied on.
  readonly remaining: number;
  assertHeld(): Promise<void>;
  lose(cause: LockLostCause, answers: readonly MasterReport[]): void;
}

interface LockStateOptions {
  readonly holder: StateHolder;
  readonly clock: Clock;
  readonly masters: number;
  // Milliseconds.
  readonly masterTimeout: number;
  // Absent for a permit, a shared lock, and a lock on several resources, which have no state.
  readonly register: StateRegister | undefined;
}

/** @internal */
export interface StateReading {
  readonly value: unknown;
  // If false, the value is the newest that is left, and not the last that was set.
  readonly isCertain: boolean;
  // What the clocks of the masters that answered showed, and when.
  readonly clocks: readonly ClockReading[];
  // For how long the newest data of a master that may have lost the value has existed, in milliseconds by the clock of
  // that master; `undefined` if no master may have lost it.
  readonly dataAge: number | undefined;
}

/** @internal */
interface StateReadingOptions {
  // An uncertain value stays uncertain for later holders until one sets a value. Otherwise, it is stored anew when it
  // is read, and the next holder cannot know that a newer one may be lost. Default: false.
  readonly keepsDoubt?: boolean;
  // The state is opened only when all masters have answered or their time is up, and not as soon as a quorum has: of
  // two clocks, a wrong one cannot be recognized. Default: false.
  readonly awaitsAll?: boolean;
}

/**
 * A value that the holder of a lock leaves for the next one: a checkpoint, a cursor, the last run.
 *
 * `get` gives the last value that was set, or one whose `set` has failed with an error after it; what it gives is never
 * replaced by something older. A holder that lost its lock cannot set: each later holder that read the state before has
 * read everything that was set. This does not depend on clocks or on the time limit of the lock.
 *
 * It holds as long as, at any time, only a minority of the masters has lost a value since it was last read or set. With
 * `restartGuard: false`, and with one or two masters, it holds as far as the servers keep their data.
 *
 * @see https://lamport.azurewebsites.net/pubs/paxos-simple.pdf
 */
export class LockState {
  readonly #options: LockStateOptions;
  // What this lock last read or tried to set.
  #value: StateValue | undefined;
  #opened: Opening | undefined;
  // Of a value that is no user's.
  #owner: string | undefined;
  // One operation at a time.
  #last: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(options: LockStateOptions) {
    this.#options = options;
  }

  /**
   * Reads what the previous holder left. Takes two round trips to the masters the first time, one afterwards. If too few
   * masters answer, it is repeated for ten times `masterTimeout`.
   *
   * @returns `undefined` if nothing was ever set, or nothing within `expireAfter`
   * @throws {StateUncertainError} too many masters have lost their data since the value was set
   * @throws {QuorumUnavailableError} too few masters answer; another call may succeed
   * @throws {LockLostError} the lock is not held any more
   * @throws {RedlockConfigError} the lock is on several resources, or an option is invalid
   */
  async get<T = unknown>(options?: StateReadOptions): Promise<T | undefined> {
    const { value } = await this.read(options);
    return value as T | undefined;
  }

  /**
   * Leaves a value for the next holder. Resolves when a majority of the masters has stored it; repeated like `get`. If
   * the promise rejects, the value may have been stored or not; until another value is set, `get` of this lock repeats
   * the attempt.
   *
   * @param value anything that JSON can represent in 16 KiB; `null`, and not `undefined`, to clear
   * @throws {StateUncertainError} nothing was read yet, and too many masters have lost their data
   * @throws {QuorumUnavailableError} too few masters have confirmed it; another call may succeed
   * @throws {LockLostError} the lock is not held any more, or another holder has opened the state since
   * @throws {RedlockConfigError} the value cannot be stored, the lock is on several resources or is that of a job or an
   *   election, or an option is invalid
   */
  async set(value: unknown, options: StateWriteOptions = {}): Promise<void> {
    if (this.#owner !== undefined) throw ownedBy(this.#owner, this.#options.holder, value);
    await this.#set(value, options);
  }

  /**
   * Like {@link set}, for a part of this package: nothing else sets a value during this lock.
   *
   * @param owner what the value is, for messages
   * @internal
   */
  async store(owner: string, value: unknown, options: StateWriteOptions): Promise<void> {
    this.reserve(owner);
    await this.#set(value, options);
  }

  /** @internal */
  reserve(owner: string): void {
    this.#owner = owner;
  }

  async #set(value: unknown, options: StateWriteOptions): Promise<void> {
    const { onUncertain, expireAfter: life } = readOptions('options', options, OPTIONS);
    const json = jsonFrom(value);
    await this.#inTurn(async () => {
      await this.#open(onUncertain);
      // An older value with a longer life would outlive it on a master that misses this write.
      const before = this.#value?.json ? this.#value.life : 0;
      this.#value = { json, life: Math.max(life, before) };
      await this.#write('set');
    });
  }

  /**
   * Like {@link get}, with what is known about the value.
   * @internal
   */
  read(
    options: StateReadOptions = {},
    { keepsDoubt = false, awaitsAll = false }: StateReadingOptions = {},
  ): Promise<StateReading> {
    const { onUncertain } = readOptions('options', options, OPTIONS);
    return this.#inTurn(async () => {
      const opening = await this.#open(onUncertain, awaitsAll);
      const { reports, isCertain, clocks } = opening;
      if (isCertain || !keepsDoubt) await this.#write('read'); // @mutant uncertain-state-stays-uncertain
      // By one clock each: that of another master may show another time.
      const ages = reports.flatMap((report) =>
        isCounted(report) ? [] : [report.time - (beginningOf(report.generation) ?? 0)],
      );
      return {
        value: valueFrom(this.#value?.json ?? ''),
        isCertain,
        clocks,
        dataAge: ages.length > 0 ? Math.min(...ages) : undefined,
      };
    });
  }

  async #open(onUncertain: 'throw' | 'newest', awaitsAll = false): Promise<Opening> {
    const { holder, register, masters } = this.#options;
    if (!register) throw withoutState(holder);
    await holder.assertHeld();
    if (this.#opened) return this.#opened;
    const opening = await this.#persist(() => register.open({ awaitsAll }));
    await holder.assertHeld();
    if ('failed' in opening) throw this.#unavailable('open', opening);
    // Protocol 10.8
    const isAccepted = onUncertain === 'newest' && opening.reports.length === masters;
    if (!opening.isCertain && !isAccepted) {
      const advice =
        onUncertain === 'newest' ? 'all must answer, so that the newest value that is left counts' : undefined;
      throw new StateUncertainError(holder.resources, opening.answers, valueFrom(opening.value.json), advice);
    }
    this.#value = opening.value;
    this.#opened = opening;
    return opening;
  }

  // Also a value that was only read: the masters may have it from different holders.
  // Protocol 10.6 and 10.7
  async #write(what: 'read' | 'set'): Promise<void> {
    const { holder, register, masterTimeout } = this.#options;
    if (!register || !this.#value) return;
    const value = this.#value;
    const failure = await this.#persist(() => register.write(value, Math.min(masterTimeout, holder.remaining)));
    // A larger ballot is the one of a later holder.
    if (failure?.failed === 'outbid') holder.lose('owner-changed', failure.answers);
    await holder.assertHeld();
    if (failure) throw this.#unavailable(what, failure);
  }

  async #persist<T extends Opening | StateFailure | undefined>(operation: () => Promise<T>): Promise<T> {
    const { holder, clock, masterTimeout } = this.#options;
    const since = clock.read();
    for (;;) {
      const result = await operation();
      const isOutage = result !== undefined && isOutageOf(result);
      const isLate = elapsedSince(clock, since) >= PATIENCE * masterTimeout;
      if (!isOutage || isLate || holder.remaining <= 0) return result;
      await new Promise<void>((resolve) => void clock.schedule(masterTimeout, resolve));
    }
  }

  #unavailable(what: 'open' | 'read' | 'set', { answers }: StateFailure): QuorumUnavailableError {
    const { holder, masters } = this.#options;
    const intent = `${what} the state of ${showNames(holder.resources)}`;
    return new QuorumUnavailableError(intent, holder.resources, answers, quorumOf(masters), masters);
  }

  #inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#last.then(operation, operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

function withoutState({ resources, isShared = false, slot }: StateHolder): RedlockConfigError {
  const requirement = 'needs an exclusive lock on one resource';
  const given =
    slot !== undefined ? 'a permit of' : isShared ? 'a shared lock on' : `a lock on ${resources.length} resources,`;
  const message = `state ${requirement}, and this is ${given} ${showNames(resources)}`;
  return new RedlockConfigError('state', resources, requirement, message);
}

// If a majority has another key in place of the lock's, no repetition helps.
function isOutageOf(result: Opening | StateFailure): boolean {
  if (!('failed' in result) || result.failed !== 'unavailable') return false;
  const refusals = result.answers.filter(({ answer }) => answer?.kind === 'held').length;
  return refusals < quorumOf(result.answers.length);
}

function ownedBy(owner: string, { resources }: StateHolder, value: unknown): RedlockConfigError {
  const requirement = `is ${owner}: keep a value of your own in the state of another lock`;
  return new RedlockConfigError('state', value, requirement, `the state of ${showNames(resources)} ${requirement}`);
}
