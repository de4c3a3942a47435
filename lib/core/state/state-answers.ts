import type { MasterReport } from '../errors.js';
import { compareVersions } from './ballot.js';
import type { StoredValue } from './state-entry.js';
import type { StateReport } from './state-requests.interface.js';

/** In milliseconds. */
export const DAY = 86_400_000;
/** How long a value is kept unless its writer says otherwise, in milliseconds. Protocol 10.9. */
export const DEFAULT_STATE_LIFE = 30 * DAY;

/** A value as JSON, empty for none, and how long it is kept, in milliseconds. */
export interface StateValue {
  readonly json: string;
  readonly life: number;
}

/** What the masters that answered have stored. */
export function reportsIn(answers: readonly MasterReport[]): readonly StateReport[] {
  return answers.flatMap(({ answer }) => (answer?.kind === 'granted' && answer.state ? [answer.state] : []));
}

/** Whether a master certainly has every value that it has acknowledged. Protocol 10.3. */
export function isCounted({ entry, generation, isFirst }: StateReport): boolean {
  const stored = entry?.stored;
  return stored ? stored.generation === generation : isFirst; // @mutant stale-state-counted
}

/** The report with the newest version; `undefined` if none has a value. */
export function newestOf(reports: readonly StateReport[]): StateReport | undefined {
  return reports.reduce<StateReport | undefined>((newest, report) => {
    const [one, other] = [report.entry?.stored, newest?.entry?.stored];
    if (!one) return newest;
    return !other || compareVersions(one.version, other.version) > 0 ? report : newest;
  }, undefined);
}

/**
 * The value in a report. One that expires within a day counts as none: the masters delete it at slightly different times,
 * and a value that only some of them still have would come back.
 * Protocol 10.9.
 */
export function valueOf(report: StateReport | undefined): StateValue {
  const stored = report?.entry?.stored;
  if (!report || !stored) return { json: '', life: DEFAULT_STATE_LIFE };
  return { json: isExpired(stored, report.time) ? '' : stored.json, life: stored.life };
}

function isExpired({ at, life }: StoredValue, time: number): boolean {
  return time - at > life - DAY;
}
