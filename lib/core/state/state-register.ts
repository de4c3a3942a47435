import { type MasterReport, QuorumUnavailableError, RedlockConfigError } from '../errors.js';
import { type Ballot, compareVersions, EXPIRES_EARLY, type StateReport } from './state-entry.js';
import { type Clock, elapsedBetween, type Instant } from '../clock.js';
import { showNames } from '../display.js';
import { type Master, type MasterReply, TIMED_OUT } from '../master.interface.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';
import { microsecondsOf } from '../wall-clock.js';

// In milliseconds.
export const DAY = 86_400_000;
// In milliseconds.
// Protocol 10.9
export const DEFAULT_STATE_LIFE = 30 * DAY;

// `json` is empty for no value. `life` is in milliseconds.
export interface StateValue {
  readonly json: string;
  readonly life: number;
}

function reportsIn(answers: readonly MasterReport[]): readonly StateReport[] {
  return answers.flatMap(({ answer }) => (answer?.kind === 'granted' && answer.state ? [answer.state] : []));
}

// Such a master certainly has every value that it has acknowledged.
// Protocol 10.3
export function isCounted({ entry, generation, isFirst }: StateReport): boolean {
  const stored = entry?.stored;
  return stored ? stored.generation === generation : isFirst; // @mutant stale-state-counted
}

// `undefined` if no report has a value.
function newestOf(reports: readonly StateReport[]): StateReport | undefined {
  return reports.reduce<StateReport | undefined>((newest, report) => {
    const [one, other] = [report.entry?.stored, newest?.entry?.stored];
    if (!one) return newest;
    return !other || compareVersions(one.version, other.version) > 0 ? report : newest;
  }, undefined);
}

// Within a day of its end, a value counts as none: the masters delete it at slightly different times, and a value that
// only some of them still have would come back.
// Protocol 10.9
function valueOf(reports: readonly StateReport[]): StateValue {
  const newest = newestOf(reports);
  const stored = newest?.entry?.stored;
  if (!stored) return { json: '', life: DEFAULT_STATE_LIFE };
  // By the clocks of all that have it: one of them may be wrong.
  const same = reports.filter((report) => isSame(report, newest));
  const counted = same.filter(isCounted);
  const isExpired = (counted.length > 0 ? counted : same).every(({ entry, time }) => {
    const { at, life } = entry?.stored ?? stored;
    return time - at > life - EXPIRES_EARLY;
  });
  return { json: isExpired ? '' : stored.json, life: stored.life };
}

// In bytes of UTF-8: every master stores and sends a state as a whole.
const MAX_STATE_BYTES = 16_384;

export function jsonFrom(value: unknown): string {
  const json = stringify(value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_STATE_BYTES) {
    const requirement = `must have at most ${MAX_STATE_BYTES} bytes as JSON, and has ${bytes}: store it elsewhere, and keep its name here`;
    throw new RedlockConfigError('state', value, requirement);
  }
  return json;
}

// An empty text stands for no value.
export function valueFrom(json: string): unknown {
  return json === '' ? undefined : JSON.parse(json);
}

function stringify(value: unknown): string {
  let json: string | undefined;
  try {
    // Its type does not say that functions, symbols and undefined give no text.
    const text: unknown = JSON.stringify(value);
    // NaN and the like give the text of null, which clears the state.
    if (typeof text === 'string' && (text !== 'null' || value === null)) json = text;
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : 'an unknown error';
    throw new RedlockConfigError('state', value, `must be a value that JSON can represent (${why})`);
  }
  if (json !== undefined) return json;
  throw new RedlockConfigError(
    'state',
    value,
    'must be a value that JSON can represent: null, and not undefined, clears it',
  );
}

/** A state that was read without its lock. */
export interface StateSnapshot<T = unknown> {
  /** The newest value that a master reported; `undefined` if there is none. */
  readonly value: T | undefined;
  /** Whether a majority of the masters has stored it: `false` while it is being set, and after losses of data. */
  readonly settled: boolean;
}

interface ReadStateOptions {
  readonly masters: readonly Pick<Master, 'name' | 'ask'>[];
  readonly resource: string;
  readonly key: string;
  readonly entry: string;
  readonly clock: Clock;
  // Milliseconds.
  readonly timeout: number;
}

// Changes nothing on the masters. Throws if too few of them answer.
// Protocol 10.10
export async function readSnapshot({ resource, key, entry, ...round }: ReadStateOptions): Promise<StateSnapshot> {
  const answers = await askAll({ ...round, request: { op: 'read-state', keys: [key], entry } });
  const reports = reportsIn(answers);
  const quorum = quorumOf(answers.length);
  if (reports.length < quorum) {
    const intent = `read the state of ${showNames([resource])}`;
    throw new QuorumUnavailableError(intent, [resource], answers, quorum, answers.length);
  }
  const newest = newestOf(reports);
  const settled = reports.filter((report) => isCounted(report) && isSame(report, newest)).length >= quorum;
  return { value: valueFrom(valueOf(reports).json), settled };
}

function isSame(report: StateReport, newest: StateReport | undefined): boolean {
  const [one, other] = [report.entry?.stored, newest?.entry?.stored];
  return one && other ? compareVersions(one.version, other.version) === 0 : one === other;
}

// An opening is repeated if another holder had a larger ballot or answers came late.
const MAX_OPENINGS = 5;

// Quarantined masters take no part: what they answer could be older than what they have acknowledged.
const QUARANTINED: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'it takes no part in this state', remaining: 0, sent: false },
} as const);

const WITHOUT_STATE: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'it has lost data since the state was written', remaining: 0, sent: true },
} as const);

interface StateRegisterOptions {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  readonly key: string;
  readonly entry: string;
  readonly token: string;
  // Random, for this lock only. It is stored with the value, and is no secret.
  readonly id: string;
  // Milliseconds.
  readonly masterTimeout: number;
}

export interface Opening {
  // A quorum of masters that have lost nothing agreed.
  readonly isCertain: boolean;
  readonly value: StateValue;
  readonly answers: readonly MasterReport[];
  readonly reports: readonly StateReport[];
  readonly clocks: readonly ClockReading[];
}

// `time` is in milliseconds since the epoch, `at` when the answer of the master arrived.
export interface ClockReading {
  readonly master: string;
  readonly time: number;
  readonly at: Instant;
}

// `outbid`: another holder has opened the state since. `unavailable`: too few masters have agreed.
export interface StateFailure {
  readonly failed: 'outbid' | 'unavailable';
  readonly answers: readonly MasterReport[];
}

// Each holder opens the register once, with a ballot of its own. A quorum of masters then promises to refuse smaller
// ballots, and answers what it has stored. The holder writes the newest value under its own ballot before it relies on
// it, because the value may be on one master only, which the next holder may not ask. It relies neither on the lock nor
// on clocks.
// @see https://lamport.azurewebsites.net/pubs/paxos-simple.pdf
export class StateRegister {
  // Of each master's data before the opening. Masters without one take no part.
  private generations: ReadonlyMap<Master, string> = new Map();
  private clocks: readonly ClockReading[] = [];
  private ballot: Ballot;
  private sequence = -1;
  private readonly quorum: number;

  constructor(private readonly options: StateRegisterOptions) {
    this.quorum = quorumOf(options.masters.length);
    this.ballot = { number: 0, id: options.id };
  }

  // Once for each lock.
  // Protocol 10.5
  async open({ awaitsAll }: { readonly awaitsAll: boolean }): Promise<Opening | StateFailure> {
    for (let attempt = 1; ; attempt++) {
      const answers = await this.openOnce(awaitsAll);
      const reports = reportsIn(answers);
      const { clocks } = this;
      const largest = largestPromise(answers);
      const counted = reports.filter(isCounted).length; // @mutant masters-that-lost-the-state-counted
      if (counted >= this.quorum) return { isCertain: true, value: valueOf(reports), answers, reports, clocks };
      const isRefused = largest >= this.ballot.number;
      const isLate = answers.some(({ answer }) => answer?.kind === 'timeout' && answer.sent);
      if ((isRefused || isLate) && attempt < MAX_OPENINGS) {
        this.ballot = { ...this.ballot, number: Math.max(largest, this.ballot.number) + 1 };
        continue;
      }
      const explained = answers.map(explain);
      // The masters that did not answer may have lost nothing.
      const missing = this.options.masters.length - reports.length;
      if (counted + missing >= this.quorum) return { failed: 'unavailable', answers: explained };
      return { isCertain: false, value: valueOf(reports), answers: explained, reports, clocks };
    }
  }

  // Under the ballot of this holder. `undefined` when a quorum has stored the value.
  // Protocol 10.7
  async write({ json, life }: StateValue, timeout: number): Promise<StateFailure | undefined> {
    const { number, id } = this.ballot;
    const version = { number, id, sequence: ++this.sequence };
    const { key, entry, token, masters, clock } = this.options;
    const answers = await askAll({
      masters,
      clock,
      timeout,
      request: (master) => {
        const generation = this.generations.get(master);
        if (generation === undefined) return QUARANTINED;
        return { op: 'write-state', keys: [key], entry, token, generation, version, life, json };
      },
      isDecided: (replies) => this.isCertain(replies),
    });
    const written = answers.filter(({ answer }) => answer?.kind === 'granted').length;
    if (written >= this.quorum) return undefined; // @mutant state-written-to-one-master
    return { failed: largestPromise(answers) > 0 ? 'outbid' : 'unavailable', answers };
  }

  private openOnce(awaitsAll: boolean): Promise<readonly MasterReport[]> {
    const { masters, clock, key, entry, token, masterTimeout } = this.options;
    const number = Math.max(microsecondsOf(clock, 'the state of a lock'), this.ballot.number);
    this.ballot = { number, id: this.ballot.id };
    // Before the requests: an answer of data that is lost meanwhile must not count for the data that replaces it.
    // Protocol 10.4
    this.generations = new Map(
      masters.flatMap((master) => (master.isQuarantined ? [] : [[master, master.identity().generation ?? '']])), // @mutant quarantined-masters-open-the-state
    );
    const { ballot, generations } = this;
    this.clocks = [];
    const started = clock.read();
    return askAll({
      masters,
      clock,
      timeout: masterTimeout,
      request: (master) => {
        const generation = generations.get(master);
        if (generation === undefined) return QUARANTINED;
        return { op: 'open-state', keys: [key], entry, token, generation, ballot, life: DEFAULT_STATE_LIFE };
      },
      // An answer that comes late, while this process was busy, does not count.
      judge: (answer, { name: master }) => {
        const at = clock.read();
        if (elapsedBetween(started, at) > masterTimeout) return TIMED_OUT; // @mutant late-openings-counted
        if (answer.kind === 'granted' && answer.state) {
          this.clocks = [...this.clocks, { master, time: answer.state.time, at }];
        }
        return answer;
      },
      isDecided: (replies) => !awaitsAll && this.isOpened(replies),
    });
  }

  private isOpened(replies: readonly MasterReply[]): boolean {
    const reports = replies.flatMap((reply) => (reply.kind === 'granted' && reply.state ? [reply.state] : []));
    return reports.filter(isCounted).length >= this.quorum;
  }

  // A quorum has agreed, or cannot agree any more.
  private isCertain(replies: readonly MasterReply[]): boolean {
    const granted = replies.filter(({ kind }) => kind === 'granted').length;
    return granted >= this.quorum || granted + this.options.masters.length - replies.length < this.quorum;
  }
}

function explain(report: MasterReport): MasterReport {
  const { answer } = report;
  const isLost = answer?.kind === 'granted' && answer.state && !isCounted(answer.state);
  return isLost ? { ...report, answer: WITHOUT_STATE } : report;
}

// Because of which a master has refused; `0` if none has.
function largestPromise(answers: readonly MasterReport[]): number {
  return answers.reduce(
    (largest, { answer }) => Math.max(largest, answer?.kind === 'held' ? (answer.promised?.number ?? 0) : 0),
    0,
  );
}
