import { GRANTED, type MasterReply } from '../core/master.interface.js';
import { entryFrom, FOREIGN } from '../core/state/state-entry.js';
import type { OpenStateRequest, ReadStateRequest, WriteStateRequest } from '../core/state/state-requests.interface.js';
import { HELD } from './replies.js';
import { STATE } from './scripts/state.lua.js';
import { FOREIGN_ENTRY, FREE, NOT_THE_HOLDER, OUTBID, UNMARKED } from './scripts/statuses.js';

/** A request that concerns the state of a resource. */
export type StateRequest = OpenStateRequest | WriteStateRequest | ReadStateRequest;

/** The server's identity, as this process knows it. */
interface KnownServer {
  /** Name of the marker; empty without a restart guard. */
  readonly marker: string;
  readonly run: string;
  readonly replid: string;
}

/** The server has other data than this process knows, or its history has got another name. */
export const OTHER_DATA: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'its data has changed since the state was opened', remaining: 0, sent: true },
} as const);

export function isStateRequest(request: { readonly op: string }): request is StateRequest {
  return request.op.endsWith('-state');
}

/** Carries out a request. Rejects with the error of the connection or of the server. */
export async function runStateRequest(
  request: StateRequest,
  { marker, run, replid }: KnownServer,
  evaluate: (script: string, args: readonly (string | number)[]) => Promise<unknown>,
): Promise<MasterReply> {
  const generation = request.op === 'read-state' ? '' : request.generation;
  const args = [request.op, marker, run, replid, generation, request.entry, ...argumentsOf(request)];
  return replyFrom(await evaluate(STATE, args));
}

function argumentsOf(request: StateRequest): (string | number)[] {
  if (request.op === 'read-state') return [];
  const { keys, token, life } = request;
  const { number, id } = request.op === 'open-state' ? request.ballot : request.version;
  const holder = [keys[0] ?? '', token, life, number.toFixed(0), id];
  return request.op === 'open-state' ? holder : [...holder, request.version.sequence, request.json];
}

function replyFrom(values: unknown): MasterReply {
  const [status, ...rest] = values as readonly [number, ...string[]];
  if (status === UNMARKED) return OTHER_DATA;
  if (status === FOREIGN_ENTRY) return FOREIGN;
  if (status === NOT_THE_HOLDER) return HELD;
  if (status === OUTBID) return { ...HELD, promised: { number: Number(rest[0]), id: rest[1] ?? '' } };
  if (status !== FREE || rest.length === 0) return status === FREE ? GRANTED : UNEXPECTED;
  const [time = '', generation = '', first = '', entry = ''] = rest;
  const state = { entry: entryFrom(entry), generation, isFirst: first === '1', time: Number(time) };
  return { ...GRANTED, state };
}

const UNEXPECTED: MasterReply = Object.freeze({ kind: 'refused', code: 'ERR', reason: 'unexpected reply' });
