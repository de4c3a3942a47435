/** Identifies one write of a state, and orders all of them. */
export interface Version {
  /** That of the holder: at least the microseconds of its wall clock, and larger than every number that it has seen. */
  readonly number: number;
  /** Counts the writes of the holder. */
  readonly sequence: number;
}

// Protocol 10.1
export function compareVersions(one: Version, other: Version): number {
  return one.number - other.number || one.sequence - other.sequence;
}

export interface StoredValue {
  readonly version: Version;
  // Milliseconds after which the value is gone, if it is neither read nor set again.
  readonly life: number;
  // Identifies the master's data in which the value was written.
  readonly marker: string;
  // Empty for no value.
  readonly json: string;
}

export interface StateEntry {
  // The number of the holder that opened the state last.
  readonly claim: number;
  // `undefined` if the state was opened, and nothing written.
  readonly stored: StoredValue | undefined;
}

// For an entry that is not one of this library.
export const FOREIGN = Object.freeze({
  kind: 'refused',
  code: 'WRONGTYPE',
  reason: 'the entry of the state has a value of another program',
} as const);

// The claim, then the version, the life and the marker, if there was a write; its JSON follows in a line of its own.
// Protocol 10.1
const ENTRY = /^(\d+)(?: (\d+) (\d+) (\d+) (\S*)\n(.*))?$/s;

// Reads what `scripts/state.lua` and `memory/operations.ts` write; `undefined` for anything else.
export function entryFrom(text: string): StateEntry | undefined {
  const match = ENTRY.exec(text);
  if (!match) return undefined;
  const [, claim, number, sequence, life, marker = '', json] = match;
  const version = { number: Number(number), sequence: Number(sequence) };
  const stored = json === undefined ? undefined : { version, life: Number(life), marker, json };
  return { claim: Number(claim), stored };
}

export function entryText({ claim, stored }: StateEntry): string {
  if (!stored) return claim.toFixed(0);
  const { version, life, marker, json } = stored;
  return `${claim.toFixed(0)} ${version.number.toFixed(0)} ${version.sequence} ${life.toFixed(0)} ${marker}\n${json}`;
}

interface StateRequest {
  /** The key of the lock, as the only one. */
  readonly keys: readonly string[];
  /** Name of the entry. */
  readonly entry: string;
}

interface HolderRequest extends StateRequest {
  /** Identifies the acquisition that holds the lock. A secret. */
  readonly token: string;
  /** Identifies the master's data when the holder began to open the state. In other data, the master refuses. */
  readonly marker: string;
  /** When the round of this request began: see {@link AcquireRequest}. */
  readonly since: number;
  /** Milliseconds after which the entry is gone. */
  readonly life: number;
}

/**
 * Claims the entry for the number, so that no smaller one writes it from now on, and answers what it contains. Refuses if
 * the entry is claimed for this number or a larger one, or if the key of the lock does not hold the token.
 */
export interface OpenStateRequest extends HolderRequest {
  /** The kind of request. */
  readonly op: 'open-state';
  /** That of the holder. */
  readonly number: number;
}

/** Writes the entry. Refuses if it is claimed for a larger number, or if the key of the lock does not hold the token. */
export interface WriteStateRequest extends HolderRequest {
  /** The kind of request. */
  readonly op: 'write-state';
  /** The number of the holder, and that of this write. */
  readonly version: Version;
  /** Empty to store nothing. */
  readonly json: string;
}

/** Answers what the entry contains, and changes nothing. */
export interface ReadStateRequest extends StateRequest {
  /** The kind of request. */
  readonly op: 'read-state';
}

export interface StateReport {
  // `undefined` if there is no entry.
  readonly entry: StateEntry | undefined;
  // Identifies the master's data; empty if nothing does, so that its loss cannot be noticed.
  readonly marker: string;
}

// Such a master certainly has every value that it has acknowledged.
// Protocol 10.2
export function isCounted({ entry, marker }: StateReport): boolean {
  return marker === '' || entry?.stored?.marker === marker; // @mutant stale-state-counted
}

// Since when the master votes with this data, by its clock in milliseconds.
export function beginningOf(marker: string): number {
  return Number(/\d+$/.exec(marker)?.[0] ?? 0);
}

// `undefined` if no report has a value.
export function newestOf(reports: readonly StateReport[]): StoredValue | undefined {
  const values = reports.flatMap(({ entry }) => entry?.stored ?? []);
  return values.reduce<StoredValue | undefined>(
    (newest, value) => (newest && compareVersions(newest.version, value.version) >= 0 ? newest : value), // @mutant oldest-state-read
    undefined,
  );
}
