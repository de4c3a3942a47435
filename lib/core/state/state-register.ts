import { type Clock, type Instant } from '../clock.js';
import { microsecondsOf } from '../wall-clock.js';
import type { MasterReport } from '../errors.js';
import type { Master, MasterReply } from '../master.interface.js';
import { quorumOf } from '../acquire/quorum-call.js';
import type { Ballot } from './ballot.js';
import { DEFAULT_STATE_LIFE, isCounted, newestOf, reportsIn, type StateValue, valueOf } from './state-answers.js';
import type { StateReport } from './state-requests.interface.js';
import { stateRound } from './state-round.js';

/** An opening is repeated so many times, if another holder had a larger ballot or answers came late. */
const MOST_OPENINGS = 5;

/** Quarantined masters take no part: what they answer could be older than what they have acknowledged. */
const QUARANTINED: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'it takes no part in this state', remaining: 0, sent: false },
} as const);

const WITHOUT_STATE: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'it has lost data since the state was written', remaining: 0, sent: true },
} as const);

/** What the register of one lock needs. */
export interface StateRegisterOptions {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  /** The key of the lock. */
  readonly key: string;
  /** The name of the entry. */
  readonly entry: string;
  /** The token of the lock. */
  readonly token: string;
  /** Random, for this lock only. It is stored with the value, and is no secret. */
  readonly id: string;
  /** Milliseconds. */
  readonly masterTimeout: number;
}

/** The result of an opening. */
export interface Opening {
  /** Whether a quorum of masters that have lost nothing agreed. */
  readonly isCertain: boolean;
  readonly value: StateValue;
  readonly answers: readonly MasterReport[];
  /** What the masters that answered have stored. */
  readonly reports: readonly StateReport[];
  readonly clocks: readonly ClockReading[];
}

/** What the clock of a master showed, in milliseconds since the epoch, when its answer arrived. */
export interface ClockReading {
  /** Name of the master. */
  readonly master: string;
  readonly time: number;
  readonly at: Instant;
}

/** Why a round has failed: another holder has opened the state since, or too few masters have agreed. */
export interface StateFailure {
  readonly failed: 'outbid' | 'unavailable';
  readonly answers: readonly MasterReport[];
}

/**
 * The value that a holder leaves for the next one: a register over all masters.
 *
 * Each holder opens it once, with a ballot of its own. A quorum of masters then promises to refuse smaller ballots, and
 * answers what it has stored. The holder writes the newest value under its own ballot before it relies on it, because
 * the value may be on one master only, which the next holder may not ask. It relies neither on the lock nor on clocks.
 *
 * @see https://lamport.azurewebsites.net/pubs/paxos-simple.pdf
 */
export class StateRegister {
  /** The generation of each master's data before the opening. The others take no part. */
  private generations: ReadonlyMap<Master, string> = new Map();
  private clocks: readonly ClockReading[] = [];
  private ballot: Ballot;
  private sequence = -1;
  private readonly quorum: number;

  constructor(private readonly options: StateRegisterOptions) {
    this.quorum = quorumOf(options.masters.length);
    this.ballot = { number: 0, id: options.id };
  }

  /** Opens the register, once for each lock. Protocol 10.5. */
  async open({ awaitsAll }: { readonly awaitsAll: boolean }): Promise<Opening | StateFailure> {
    for (let attempt = 1; ; attempt++) {
      const answers = await this.openOnce(awaitsAll);
      const reports = reportsIn(answers);
      const { clocks } = this;
      const largest = largestPromise(answers);
      const counted = reports.filter(isCounted).length; // @mutant masters-that-lost-the-state-counted
      if (counted >= this.quorum)
        return { isCertain: true, value: valueOf(newestOf(reports)), answers, reports, clocks };
      const isRefused = largest >= this.ballot.number;
      const isLate = answers.some(({ answer }) => answer?.kind === 'timeout' && answer.sent);
      if ((isRefused || isLate) && attempt < MOST_OPENINGS) {
        this.ballot = { ...this.ballot, number: Math.max(largest, this.ballot.number) + 1 };
        continue;
      }
      const explained = answers.map(explain);
      // The masters that did not answer may have lost nothing.
      const missing = this.options.masters.length - reports.length;
      if (counted + missing >= this.quorum) return { failed: 'unavailable', answers: explained };
      return { isCertain: false, value: valueOf(newestOf(reports)), answers: explained, reports, clocks };
    }
  }

  /**
   * Writes a value under the ballot of this holder. Resolves with `undefined` when a quorum has stored it.
   * Protocol 10.7.
   */
  async write({ json, life }: StateValue, timeout: number): Promise<StateFailure | undefined> {
    const version = { ...this.ballot, sequence: ++this.sequence };
    const { key, entry, token, masters, clock } = this.options;
    const answers = await stateRound({
      ...{ masters, clock, timeout, countsLate: true },
      requestTo: (master) => {
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
    this.ballot = { ...this.ballot, number };
    // Before the requests: an answer of data that is lost meanwhile must not count for the data that replaces it.
    // Protocol 10.4
    this.generations = new Map(
      masters.flatMap((master) => (master.isQuarantined ? [] : [[master, master.identity().generation ?? '']])), // @mutant quarantined-masters-open-the-state
    );
    const { ballot, generations } = this;
    this.clocks = [];
    return stateRound({
      ...{ masters, clock, timeout: masterTimeout, countsLate: false },
      requestTo: (master) => {
        const generation = generations.get(master);
        if (generation === undefined) return QUARANTINED;
        return { op: 'open-state', keys: [key], entry, token, generation, ballot, life: DEFAULT_STATE_LIFE };
      },
      onAnswer: (answer, { name: master }) => {
        if (answer.kind !== 'granted' || !answer.state) return;
        this.clocks = [...this.clocks, { master, time: answer.state.time, at: clock.read() }];
      },
      isDecided: (replies) => !awaitsAll && this.isOpened(replies),
    });
  }

  private isOpened(replies: readonly MasterReply[]): boolean {
    const reports = replies.flatMap((reply) => (reply.kind === 'granted' && reply.state ? [reply.state] : []));
    return reports.filter(isCounted).length >= this.quorum;
  }

  /** Whether a quorum has agreed, or cannot agree any more. */
  private isCertain(replies: readonly MasterReply[]): boolean {
    const granted = replies.filter(({ kind }) => kind === 'granted').length;
    return granted >= this.quorum || granted + this.options.masters.length - replies.length < this.quorum;
  }
}

/** Says of a master why its answer did not count. */
function explain(report: MasterReport): MasterReport {
  const { answer } = report;
  const isLost = answer?.kind === 'granted' && answer.state && !isCounted(answer.state);
  return isLost ? { ...report, answer: WITHOUT_STATE } : report;
}

/** The largest number of a ballot because of which a master has refused; `0` if none has. */
function largestPromise(answers: readonly MasterReport[]): number {
  return answers.reduce(
    (largest, { answer }) => Math.max(largest, answer?.kind === 'held' ? (answer.promised?.number ?? 0) : 0),
    0,
  );
}
