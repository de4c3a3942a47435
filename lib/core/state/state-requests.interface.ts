import type { Ballot, Version } from './ballot.js';
import type { StateEntry } from './state-entry.js';

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

/** What a master has stored, in the answer to a request for it. */
export interface StateReport {
  /** `undefined` if there is no entry. */
  readonly entry: StateEntry | undefined;
  /** The generation of the master's data. */
  readonly generation: string;
  /** Whether the master has never lost data, so that a missing entry was never written. */
  readonly isFirst: boolean;
  /** Clock of the master, in milliseconds. */
  readonly time: number;
}
