import type { Clock } from '../clock.js';
import { type MasterReport, QuorumUnavailableError } from '../errors.js';
import { showNames } from '../display.js';
import type { Master } from '../master.interface.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';
import { compareVersions } from './ballot.js';
import { isCounted, newestOf, reportsIn, valueOf } from './state-answers.js';
import type { StateReport } from './state-requests.interface.js';
import { valueFrom } from './state-value.js';

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
  /** Milliseconds. */
  readonly timeout: number;
}

/**
 * Asks all masters, and changes nothing.
 * Protocol 10.10.
 *
 * @throws {QuorumUnavailableError} if too few masters answer
 */
export async function readState({ resource, key, entry, ...round }: ReadStateOptions): Promise<StateSnapshot> {
  const answers = await askAll({ ...round, request: { op: 'read-state', keys: [key], entry } });
  return snapshotOf(resource, answers);
}

/**
 * The newest value in the answers of all masters.
 *
 * @throws {QuorumUnavailableError} if too few masters have answered
 */
export function snapshotOf(resource: string, answers: readonly MasterReport[]): StateSnapshot {
  const reports = reportsIn(answers);
  const quorum = quorumOf(answers.length);
  if (reports.length < quorum) {
    const intent = `read the state of ${showNames([resource])}`;
    throw new QuorumUnavailableError(intent, [resource], answers, quorum, answers.length);
  }
  const newest = newestOf(reports);
  const settled = reports.filter((report) => isCounted(report) && isSame(report, newest)).length >= quorum;
  return { value: valueFrom(valueOf(newest).json), settled };
}

function isSame(report: StateReport, newest: StateReport | undefined): boolean {
  const [one, other] = [report.entry?.stored, newest?.entry?.stored];
  return one && other ? compareVersions(one.version, other.version) === 0 : one === other;
}
