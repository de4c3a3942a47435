import { type GrantedReply, GRANTED, type HeldReply, type RefusedReply } from '../core/master.interface.js';
import { compareBallots, compareVersions } from '../core/state/ballot.js';
import { entryFrom, entryText, FOREIGN, type StateEntry } from '../core/state/state-entry.js';
import type { OpenStateRequest, ReadStateRequest, WriteStateRequest } from '../core/state/state-requests.interface.js';
import type { Commands } from './operation-context.interface.js';

// The operations of lib/redis/scripts/state.lua.ts, written a second time in another language: see operations.ts.

/** A server that stores states. */
export interface StateContext {
  readonly data: Pick<Commands, 'get' | 'set'>;
  /** Wall clock of the server, in milliseconds. */
  readonly now: () => number;
  /** The generation of its data, and whether it is the first. */
  readonly generation: string;
  readonly isFirst: boolean;
}

type StateReply = GrantedReply | HeldReply | RefusedReply;

const NOT_THE_HOLDER: HeldReply = Object.freeze({ kind: 'held', remaining: undefined });

// Protocol 10.5
export function openState(
  server: StateContext,
  { keys, entry: name, token, ballot, life }: Omit<OpenStateRequest, 'op' | 'generation'>,
): StateReply {
  if (!isHolder(server, keys, token)) return NOT_THE_HOLDER;
  const entry = readEntry(server, name);
  if (entry === 'foreign') return FOREIGN;
  if (entry && compareBallots(ballot, entry.promised) <= 0) return outbid(entry); // @mutant smaller-ballots-open-the-state-in-memory
  const stored = entry?.stored;
  // The promise outlives the value, whose time is over by its own `at` and `life`.
  server.data.set(name, entryText({ promised: ballot, stored }), Math.max(life, stored?.life ?? 0)); // @mutant ballots-not-promised-in-memory
  return reportOf(server, entry);
}

// Protocol 10.7
export function writeState(
  server: StateContext,
  { keys, entry: name, token, version, life, json }: Omit<WriteStateRequest, 'op' | 'generation'>,
): StateReply {
  if (!isHolder(server, keys, token)) return NOT_THE_HOLDER;
  const entry = readEntry(server, name);
  if (entry === 'foreign') return FOREIGN;
  if (entry && compareBallots(version, entry.promised) < 0) return outbid(entry); // @mutant smaller-ballots-write-the-state-in-memory
  const order = entry?.stored ? compareVersions(version, entry.stored.version) : 1;
  // The same request may arrive twice, and an earlier one of the same holder after a later one.
  if (order < 0) return NOT_THE_HOLDER;
  if (order > 0) {
    const { number, id } = version;
    const stored = { version, at: Math.floor(server.now()), life, generation: server.generation, json };
    server.data.set(name, entryText({ promised: { number, id }, stored }), life);
  }
  return GRANTED;
}

// Protocol 10.10
export function readState(server: StateContext, { entry: name }: Pick<ReadStateRequest, 'entry'>): StateReply {
  const entry = readEntry(server, name);
  return entry === 'foreign' ? FOREIGN : reportOf(server, entry);
}

function isHolder({ data }: StateContext, [key = '']: readonly string[], token: string): boolean {
  return data.get(key) === token; // @mutant any-holder-opens-the-state-in-memory
}

function readEntry({ data }: StateContext, name: string): StateEntry | 'foreign' | undefined {
  const text = data.get(name);
  return text === undefined ? undefined : (entryFrom(text) ?? 'foreign');
}

function reportOf({ generation, isFirst, now }: StateContext, entry: StateEntry | undefined): GrantedReply {
  return { ...GRANTED, state: { entry, generation, isFirst, time: Math.floor(now()) } };
}

function outbid({ promised }: StateEntry): HeldReply {
  return { ...NOT_THE_HOLDER, promised };
}
