import { type Clock, elapsedSince } from '../redlock/clock.js';
import type { Duration } from '../settings/duration.js';
import { LockLostError, type MasterReport, QuorumUnavailableError } from '../redlock/errors.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { duration, optional, readOptions, type TableOf } from '../settings/table.js';
import type { Held } from './held.js';
import { Keyspace } from '../settings/keyspace.js';
import { askAll } from '../masters/ask-all.js';
import { quorumOf } from '../redlock/quorum.js';
import type { Master, MasterReply } from '../masters/master.interface.js';
import { TIMED_OUT } from '../redlock/server.js';
import { showNames } from '../redlock/names.js';
import { microsecondsOf } from './fencing-token.js';
import {
  beginningOf,
  compareVersions,
  isCounted,
  newestOf,
  type OpenStateRequest,
  type StateReport,
  type StoredValue,
  type WriteStateRequest,
} from './state-entry.js';
import { jsonFrom, valueFrom } from './state-value.js';

const DAY = 86_400_000;
// In milliseconds.
const DEFAULT_LIFE = 30 * DAY;

/** Options of `lock.state.set`. */
export interface StateWriteOptions {
  /**
   * How long the value is kept if it is neither read nor set again, in milliseconds or as a string such as `'48h'`; at
   * least two days. A later `set` can make it longer, and not shorter.
   * @default 30 days
   */
  expireAfter?: Duration;
}

const OPTIONS = {
  // At least two days, at most 10,000.
  expireAfter: optional(duration(2 * DAY, undefined, 10_000 * DAY), DEFAULT_LIFE),
} satisfies TableOf<StateWriteOptions>;

// What too few masters have answered is repeated for so many times `masterTimeout`: longer than a process stalls.
const PATIENCE = 10;

interface StateAccess {
  readonly masters: readonly Master[];
  readonly key: string;
  readonly entry: string;
  readonly token: string;
}

// `undefined` for a permit, a shared lock, and a lock on several resources, which have no state.
function accessTo({ resources, isShared, slot, owned, context }: Held): StateAccess | undefined {
  const [resource, another] = resources;
  const { masters, keys, token } = owned;
  const [key] = keys;
  if (isShared || slot !== undefined || resource === undefined || another !== undefined || key === undefined) return;
  return { masters, key, token, entry: new Keyspace(context.settings.keyPrefix).stateOf(resource) };
}

/** @internal */
export interface StateReading {
  readonly value: unknown;
  // If too many masters have lost the value to be sure that it is the last one: since when the newest of them votes, by
  // its clock in milliseconds.
  readonly since: number | undefined;
}

// `undefined`: enough masters have agreed. Otherwise, so many must.
type Disagreement = { readonly needed: number; readonly answers: readonly MasterReport<MasterReply>[] } | undefined;

/**
 * A value that the holder of a lock leaves for the next one: a checkpoint, a cursor, the last run.
 *
 * `get` gives the last value that was set, or one whose `set` has failed with an error after it; what it gives is never
 * replaced by something older. A holder that lost its lock cannot set: each later holder that read the state before has
 * read everything that was set. This does not depend on clocks or on the time limit of the lock.
 *
 * It holds as long as, at any time, only a minority of the masters has lost a value since it was last read or set. After
 * a majority has lost it, `get` gives an older value, or none, without an error. With `restartGuard: false`, and with one
 * or two masters, it holds as far as the servers keep their data.
 *
 * Each holder claims the state once, for a number of its own. A quorum of masters then refuses smaller numbers, and
 * answers what it has stored. The holder writes the newest value under its own number before it relies on it, because the
 * value may be on one master only, which the next holder may not ask.
 * @see https://lamport.azurewebsites.net/pubs/paxos-simple.pdf
 */
export class LockState {
  readonly #held: Held;
  readonly #access: StateAccess | undefined;
  #number = 0;
  #sequence = 0;
  // Of each master's data before the opening. Masters without one take no part.
  #markers: ReadonlyMap<Master, string> = new Map();
  // What this lock last read or tried to set.
  #value: Pick<StoredValue, 'json' | 'life'> = { json: '', life: DEFAULT_LIFE };
  #opened: Pick<StateReading, 'since'> | undefined;
  // Of a value that is no user's.
  #owner: string | undefined;
  // One operation at a time.
  #last: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(held: Held) {
    this.#held = held;
    this.#access = accessTo(held);
  }

  /**
   * Reads what the previous holder left. Takes two round trips to the masters the first time, one afterwards. If too few
   * masters answer, it is repeated for ten times `masterTimeout`. A state that was never set, or that masters have lost,
   * needs all masters once.
   *
   * @returns `undefined` if nothing was ever set, or nothing within `expireAfter`
   * @throws {QuorumUnavailableError} too few masters answer; another call may succeed
   * @throws {LockLostError} the lock is not held any more
   * @throws {RedlockConfigError} the lock is on several resources
   */
  async get<T = unknown>(): Promise<T | undefined> {
    const { value } = await this.read();
    return value as T | undefined;
  }

  /**
   * Leaves a value for the next holder. Resolves when a majority of the masters has stored it; repeated like `get`. If
   * the promise rejects, the value may have been stored or not; until another value is set, `get` of this lock repeats
   * the attempt.
   *
   * @param value anything that JSON can represent in 16 KiB; `null`, and not `undefined`, to clear
   * @throws {QuorumUnavailableError} too few masters have confirmed it; another call may succeed
   * @throws {LockLostError} the lock is not held any more, or another holder has opened the state since
   * @throws {RedlockConfigError} the value cannot be stored, the lock is on several resources or is that of a job or an
   *   election, or an option is invalid
   */
  async set(value: unknown, options: StateWriteOptions = {}): Promise<void> {
    if (this.#owner !== undefined) throw ownedBy(this.#owner, this.#held, value);
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
    const { expireAfter: life } = readOptions('options', options, OPTIONS);
    const json = jsonFrom(value);
    await this.#inTurn(async () => {
      await this.#open();
      // An older value with a longer life would outlive it on a master that misses this write.
      // Protocol 10.8
      const before = this.#value.json ? this.#value.life : 0;
      this.#value = { json, life: Math.max(life, before) };
      await this.#write('set');
    });
  }

  /**
   * Like {@link get}, with what is known about the value.
   *
   * @param leavesUncertain a value that may not be the last one is not written again. Otherwise the next holder cannot
   *   know that a newer one may be lost.
   * @internal
   */
  read({ leavesUncertain = false } = {}): Promise<StateReading> {
    return this.#inTurn(async () => {
      const { since } = await this.#open();
      // Also a value that was only read: the masters may have it from different holders.
      // Protocol 10.6
      if (since === undefined || !leavesUncertain) await this.#write('read'); // @mutant state-not-written-back, uncertain-state-stays-uncertain
      return { value: valueFrom(this.#value.json), since };
    });
  }

  // Once for each lock.
  // Protocol 10.3
  async #open(): Promise<Pick<StateReading, 'since'>> {
    const access = this.#access;
    if (!access) throw withoutState(this.#held);
    this.#held.throwIfLost();
    if (this.#opened) return this.#opened;
    let reports: readonly StateReport[] = [];
    await this.#untilAgreed('open', async () => {
      const answers = await this.#claim(access);
      reports = reportsIn(answers);
      const quorum = quorumOf(answers.length);
      const isEnough = areCounted(reports, quorum) || reports.length === answers.length; // @mutant lost-state-read-from-a-quorum
      return isEnough ? undefined : { needed: reports.length < quorum ? quorum : answers.length, answers };
    });
    this.#value = newestOf(reports) ?? this.#value;
    const isCertain = areCounted(reports, quorumOf(access.masters.length));
    this.#opened = { since: isCertain ? undefined : Math.max(...reports.map(({ marker }) => beginningOf(marker))) };
    return this.#opened;
  }

  #claim({ masters, key, entry, token }: StateAccess): Promise<readonly MasterReport<MasterReply>[]> {
    const { clock, settings } = this.#held.context;
    this.#number = Math.max(microsecondsOf(clock, 'the state of a lock'), this.#number + 1);
    const number = this.#number;
    // Before the requests: an answer of data that is lost meanwhile must not count for the data that replaces it.
    // Protocol 10.4
    this.#markers = new Map(
      masters.flatMap((master) => {
        const { marker = '' } = master.identity();
        return marker === null ? [] : [[master, marker]];
      }),
    );
    return this.#ask(
      settings.masterTimeout,
      ({ marker, since }) => ({
        ...{ op: 'open-state', keys: [key], entry, token, marker, since, number, life: DEFAULT_LIFE },
      }),
      (replies) => areCounted(reportsIn(replies.map((answer) => ({ answer }))), quorumOf(masters.length)),
    );
  }

  // Protocol 10.7
  async #write(what: 'read' | 'set'): Promise<void> {
    const held = this.#held;
    const access = this.#access;
    if (!access) throw withoutState(held);
    const { masters, key, entry, token } = access;
    const { masterTimeout } = held.context.settings;
    const quorum = quorumOf(masters.length);
    await this.#untilAgreed(what, async () => {
      const version = { number: this.#number, sequence: this.#sequence++ };
      const { json, life } = this.#value;
      const answers = await this.#ask(
        Math.min(masterTimeout, held.remaining),
        ({ marker, since }) => ({
          ...{ op: 'write-state', keys: [key], entry, token, marker, since, version, life, json },
        }),
        (replies) => {
          const granted = replies.filter(({ kind }) => kind === 'granted').length;
          return granted >= quorum || granted + masters.length - replies.length < quorum;
        },
      );
      const written = answers.filter(({ answer }) => answer?.kind === 'granted').length;
      if (written >= quorum) return undefined; // @mutant state-written-to-one-master
      // A later holder has claimed it.
      if (largestClaim(answers) > this.#number) {
        held.lose(new LockLostError(held.resources, 'owner-changed', answers));
      }
      return { needed: quorum, answers };
    });
  }

  #ask(
    timeout: number,
    request: (round: Pick<OpenStateRequest, 'marker' | 'since'>) => OpenStateRequest | WriteStateRequest,
    isDecided: (replies: readonly MasterReply[]) => boolean,
  ): Promise<readonly MasterReport<MasterReply>[]> {
    const { clock } = this.#held.context;
    const started = clock.read();
    return askAll({
      ...{ masters: this.#access?.masters ?? [], timeout, clock, isDecided },
      request: (master) => {
        const marker = this.#markers.get(master);
        return marker === undefined ? WITHOUT_VOTE : request({ marker, since: started.monotonic });
      },
      // An answer that comes late, while this process was busy, may be of data that has been lost and replaced since.
      judge: (answer) => (elapsedSince(clock, started) > timeout ? TIMED_OUT : answer), // @mutant late-openings-counted
    });
  }

  async #untilAgreed(what: 'open' | 'read' | 'set', round: () => Promise<Disagreement>): Promise<void> {
    const { clock, settings } = this.#held.context;
    const { masterTimeout } = settings;
    const since = clock.read();
    for (;;) {
      const isLast = elapsedSince(clock, since) >= PATIENCE * masterTimeout;
      const disagreement = await round();
      this.#held.throwIfLost();
      if (!disagreement) return;
      const { needed, answers } = disagreement;
      const largest = largestClaim(answers);
      const refusals = answers.filter(({ answer }) => answer?.kind === 'held' && !answer.claim).length;
      // If a majority has another key instead of the lock's, no repetition helps.
      if (isLast || refusals >= quorumOf(answers.length)) throw this.#unavailable(what, needed, answers);
      if (what === 'open' && largest >= this.#number) this.#number = largest;
      else await new Promise<void>((resolve) => void clock.schedule(masterTimeout, resolve));
    }
  }

  #unavailable(what: string, needed: number, answers: readonly MasterReport<MasterReply>[]): QuorumUnavailableError {
    const { resources } = this.#held;
    const intent = `${what} the state of ${showNames(resources)}`;
    return new QuorumUnavailableError(intent, resources, answers, needed, answers.length);
  }

  #inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#last.then(operation, operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

// What a quarantined master answers could be older than what it has acknowledged.
const WITHOUT_VOTE: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'it takes no part in this state', remaining: 0 },
} as const);

function reportsIn(answers: readonly Pick<MasterReport<MasterReply>, 'answer'>[]): readonly StateReport[] {
  return answers.flatMap(({ answer }) => (answer?.kind === 'granted' && answer.state ? [answer.state] : []));
}

function areCounted(reports: readonly StateReport[], quorum: number): boolean {
  return reports.filter(isCounted).length >= quorum;
}

// Because of which a master has refused; `0` if none has.
function largestClaim(answers: readonly MasterReport<MasterReply>[]): number {
  return Math.max(0, ...answers.map(({ answer }) => (answer?.kind === 'held' ? (answer.claim ?? 0) : 0)));
}

function withoutState({ resources, isShared, slot }: Held): RedlockConfigError {
  const requirement = 'needs an exclusive lock on one resource';
  const given =
    slot !== undefined ? 'a permit of' : isShared ? 'a shared lock on' : `a lock on ${resources.length} resources,`;
  const message = `state ${requirement}, and this is ${given} ${showNames(resources)}`;
  return new RedlockConfigError('state', resources, requirement, message);
}

function ownedBy(owner: string, { resources }: Held, value: unknown): RedlockConfigError {
  const requirement = `is ${owner}: keep a value of your own in the state of another lock`;
  return new RedlockConfigError('state', value, requirement, `the state of ${showNames(resources)} ${requirement}`);
}

/** A state that was read without its lock. */
export interface StateSnapshot<T = unknown> {
  /** The newest value that a master reported; `undefined` if there is none. */
  readonly value: T | undefined;
  /** Whether a majority of the masters has stored it: `false` while it is being set, and after losses of data. */
  readonly settled: boolean;
}

interface SnapshotOptions {
  readonly masters: readonly Pick<Master, 'name' | 'ask'>[];
  readonly resource: string;
  readonly key: string;
  readonly entry: string;
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
}

// Changes nothing on the masters. Throws if too few of them answer.
// Protocol 10.9
export async function readSnapshot({ resource, key, entry, ...round }: SnapshotOptions): Promise<StateSnapshot> {
  const answers = await askAll({ ...round, request: { op: 'read-state', keys: [key], entry } });
  const reports = reportsIn(answers);
  const quorum = quorumOf(answers.length);
  if (reports.length < quorum) {
    const intent = `read the state of ${showNames([resource])}`;
    throw new QuorumUnavailableError(intent, [resource], answers, quorum, answers.length);
  }
  const newest = newestOf(reports);
  const hasNewest = ({ entry }: StateReport): boolean => {
    const stored = entry?.stored;
    return stored && newest ? compareVersions(stored.version, newest.version) === 0 : stored === newest;
  };
  const settled = areCounted(reports.filter(hasNewest), quorum);
  return { value: valueFrom(newest?.json ?? ''), settled };
}
