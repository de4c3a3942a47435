import type { RefusedReply } from '../master.interface.js';
import type { Ballot, Version } from './ballot.js';

/** A value on one master. */
export interface StoredValue {
  readonly version: Version;
  /** When it was written there, by the clock of the master, in milliseconds. */
  readonly at: number;
  /** Milliseconds from `at` after which it is gone. */
  readonly life: number;
  /** The generation of the master's data in which it was written. */
  readonly generation: string;
  /** JSON; empty if nothing is stored. */
  readonly json: string;
}

/** What one master stores for one resource. */
export interface StateEntry {
  /** The largest ballot that has opened the state there. */
  readonly promised: Ballot;
  /** `undefined` if the state was opened, and nothing written. */
  readonly stored: StoredValue | undefined;
}

/** The answer of a master whose entry is not one of this library. */
export const FOREIGN: RefusedReply = Object.freeze({
  ...{ kind: 'refused', code: 'WRONGTYPE', reason: 'the entry of the state has a value of another program' },
} as const);

/**
 * The promise, then the version, the time, the life and the generation, if there is a value, which follows in a line of its own.
 * Protocol 10.1.
 */
const ENTRY = /^(\d+) (\S+)(?: (\d+) (\S+) (\d+) (\d+) (\d+) (\S*)\n(.*))?$/s;

/** Reads what `scripts/state.lua.ts` and `memory/state-operations.ts` write; `undefined` for anything else. */
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

/** The reverse of {@link entryFrom}. */
export function entryText({ promised, stored }: StateEntry): string {
  const promise = `${promised.number.toFixed(0)} ${promised.id}`;
  if (!stored) return promise;
  const { version, at, life, generation, json } = stored;
  const written = [version.number.toFixed(0), version.id, version.sequence, at.toFixed(0), life.toFixed(0)];
  return `${promise} ${written.join(' ')} ${generation}\n${json}`;
}
