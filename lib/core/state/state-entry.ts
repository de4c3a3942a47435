/** Identifies one holder among all that open the state of a resource, and orders them. */
export interface Ballot {
  /** At least the microseconds of the holder's wall clock, and larger than every number that it has seen. */
  readonly number: number;
  /** Random, new for each lock: no two holders have the same ballot. */
  readonly id: string;
}

/** Identifies one write of one holder. */
export interface Version extends Ballot {
  /** Counts the writes of the holder, from 0. */
  readonly sequence: number;
}

// Protocol 10.1
export function compareBallots(one: Ballot, other: Ballot): number {
  if (one.number !== other.number) return one.number - other.number; // @mutant ballots-compared-by-id
  return one.id < other.id ? -1 : Number(one.id > other.id);
}

export function compareVersions(one: Version, other: Version): number {
  return compareBallots(one, other) || one.sequence - other.sequence;
}

export interface StoredValue {
  readonly version: Version;
  // By the clock of the master, in milliseconds.
  readonly at: number;
  // Milliseconds from `at` after which the value is gone.
  readonly life: number;
  // The generation of the master's data in which the value was written.
  readonly generation: string;
  // Empty if nothing is stored.
  readonly json: string;
}

export interface StateEntry {
  // The largest ballot that has opened the state there.
  readonly promised: Ballot;
  // `undefined` if the state was opened, and nothing written.
  readonly stored: StoredValue | undefined;
}

// For an entry that is not one of this library.
export const FOREIGN = Object.freeze({
  kind: 'refused',
  code: 'WRONGTYPE',
  reason: 'the entry of the state has a value of another program',
} as const);

// The promise, then the version, the time, the life and the generation, if there is a value, which follows in a line of
// its own.
// Protocol 10.1
const ENTRY = /^(\d+) (\S+)(?: (\d+) (\S+) (\d+) (\d+) (\d+) (\S*)\n(.*))?$/s;

// Reads what `scripts/state.lua` and `memory/operations.ts` write; `undefined` for anything else.
export function entryFrom(text: string): StateEntry | undefined {
  const match = ENTRY.exec(text);
  if (!match) return undefined;
  const [, promised, promisedId = '', number, id, sequence, at, life, generation = '', json = ''] = match;
  return {
    promised: { number: Number(promised), id: promisedId },
    stored:
      id === undefined
        ? undefined
        : {
            version: { number: Number(number), id, sequence: Number(sequence) },
            at: Number(at),
            life: Number(life),
            generation,
            json,
          },
  };
}

export function entryText({ promised, stored }: StateEntry): string {
  const promise = `${promised.number.toFixed(0)} ${promised.id}`;
  if (!stored) return promise;
  const { version, at, life, generation, json } = stored;
  const written = [version.number.toFixed(0), version.id, version.sequence, at.toFixed(0), life.toFixed(0)];
  return `${promise} ${written.join(' ')} ${generation}\n${json}`;
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
  /** The generation of the master's data when the holder began to open the state. In another one, the master refuses. */
  readonly generation: string;
}

/**
 * Lets no smaller ballot write the entry from now on, and answers what it contains. Refuses if it was opened with a larger
 * ballot, or if the key of the lock does not hold the token.
 */
export interface OpenStateRequest extends HolderRequest {
  /** The kind of request. */
  readonly op: 'open-state';
  /** That of the holder. */
  readonly ballot: Ballot;
  /** Milliseconds after which an entry without a value is gone. */
  readonly life: number;
}

/** Writes the entry. Refuses if it was opened with a larger ballot, or if the key of the lock does not hold the token. */
export interface WriteStateRequest extends HolderRequest {
  /** The kind of request. */
  readonly op: 'write-state';
  /** The ballot of the holder, and the number of this write. */
  readonly version: Version;
  /** Milliseconds after which the entry is gone. */
  readonly life: number;
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
  readonly generation: string;
  // The master has never lost data, so that a missing entry was never written.
  readonly isFirst: boolean;
  // Clock of the master, in milliseconds.
  readonly time: number;
}

// So long before the masters delete a value, it counts as none, in milliseconds.
// Protocol 10.9
export const EXPIRES_EARLY = 86_400_000;

// A generation begins when the data of a master is new or may have been lost.
// Protocol 10.1
export function generationFrom(name: string, began: number): string {
  return `${name}@${began}`;
}

// By the clock of the master in milliseconds; `undefined` if it is not known.
export function beginningOf(generation: string): number | undefined {
  const [, began] = /@(\d+)$/.exec(generation) ?? [];
  return began === undefined ? undefined : Number(began);
}
