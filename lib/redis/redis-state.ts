import { REVOKED } from '../redlock/holder.js';
import { GRANTED, HELD, type KeyValue, type MasterReply, type OperatorMaster } from '../masters/master.interface.js';
import {
  entryFrom,
  FOREIGN,
  type OpenStateRequest,
  type ReadStateRequest,
  type WriteStateRequest,
} from '../fencing/state-entry.js';
import { REVOKE, STATE, VALUE, VALUES } from './scripts/lua.generated.js';
import { CLAIMED, FOREIGN_ENTRY, FREE, NOT_THE_HOLDER, OTHER_MARKER, QUARANTINED } from './scripts/replies.js';

// Keys that a server scans before it serves other clients.
const SCANNED_AT_ONCE = 500;

export interface Scan {
  // Begins with the prefix.
  readonly match: string;
  readonly type?: string | undefined;
  // Bounds the time for each answer.
  readonly limit: <T>(answer: Promise<T>) => Promise<T | MasterReply>;
  // SCAN may return a name twice, and one that has expired meanwhile. A reply ends the scan.
  readonly take: (names: readonly string[]) => Promise<MasterReply | undefined>;
}

// What only a server can do.
export interface ServerOperator extends OperatorMaster {
  // Resolves with a reply if there may be more names.
  scan(scan: Scan): Promise<MasterReply | undefined>;
}

interface OperatorConnection {
  problem(): MasterReply | undefined;
  call(command: string, args: (string | number)[]): Promise<unknown>;
  // The answer contains none of these tokens.
  failure(error: unknown, tokens: readonly string[]): MasterReply;
}

export class RedisOperator implements ServerOperator {
  // `stored`: the name under which a key is stored.
  constructor(
    private readonly connection: OperatorConnection,
    private readonly stored = (name: string): string => name,
  ) {}

  async read(key: string): Promise<KeyValue | MasterReply | null> {
    const reply = await this.run(VALUE, [key], []);
    if ('kind' in reply) return reply;
    if (!Array.isArray(reply.value)) return null;
    const [value, remaining] = reply.value as [string, number];
    return { value, remaining };
  }

  async values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply> {
    const reply = await this.run(VALUES, keys, []);
    return 'kind' in reply ? reply : (reply.value as (string | null)[]);
  }

  async revoke(key: string, value: string): Promise<number | MasterReply> {
    const reply = await this.run(REVOKE, [key], [value, REVOKED]);
    return 'kind' in reply ? reply : Number(reply.value);
  }

  async scan({ match, type, limit, take }: Scan): Promise<MasterReply | undefined> {
    const filter = ['MATCH', match, 'COUNT', SCANNED_AT_ONCE, ...(type === undefined ? [] : ['TYPE', type])];
    let cursor = '0';
    do {
      const page = await limit(this.call('scan', [cursor, ...filter]));
      if ('kind' in page) return page;
      const [next, names] = page.value as [string, string[]];
      const end = await take(names);
      if (end) return end;
      cursor = next;
    } while (cursor !== '0');
    return undefined;
  }

  private run(script: string, names: readonly string[], args: readonly string[]): Promise<Reply> {
    return this.call('eval', [script, names.length, ...names.map((name) => this.stored(name)), ...args], args);
  }

  private async call(command: string, args: (string | number)[], tokens: readonly string[] = []): Promise<Reply> {
    const problem = this.connection.problem();
    if (problem) return problem;
    try {
      return { value: await this.connection.call(command, args) };
    } catch (error) {
      return this.connection.failure(error, tokens);
    }
  }
}

type Reply = { readonly value: unknown } | MasterReply;

export type StateRequest = OpenStateRequest | WriteStateRequest | ReadStateRequest;

interface Gate {
  // Name of the marker; empty without the restart guard.
  readonly marker: string;
  readonly maxTtl: number;
}

const OTHER_DATA: MasterReply = Object.freeze({
  ...{ kind: 'quarantined', reason: 'its data has changed since the state was opened', remaining: 0 },
} as const);

export function isStateRequest(request: { readonly op: string }): request is StateRequest {
  return request.op.endsWith('-state');
}

export async function runStateRequest(
  request: StateRequest,
  { marker, maxTtl }: Gate,
  evaluate: (script: string, args: readonly (string | number)[]) => Promise<unknown>,
): Promise<MasterReply> {
  const expected = request.op === 'read-state' ? '' : request.marker;
  const args = [request.op, marker, maxTtl, expected, request.entry, ...argumentsOf(request)];
  return replyFrom(await evaluate(STATE, args));
}

function argumentsOf(request: StateRequest): (string | number)[] {
  if (request.op === 'read-state') return [];
  const { keys, token, life } = request;
  const holder = [keys[0] ?? '', token, life];
  if (request.op === 'open-state') return [...holder, request.number.toFixed(0)];
  const { number, sequence } = request.version;
  return [...holder, number.toFixed(0), sequence, request.json];
}

function replyFrom(values: unknown): MasterReply {
  const [status, ...rest] = values as readonly [string | number, ...string[]];
  if (status === OTHER_MARKER) return OTHER_DATA;
  if (status === QUARANTINED) return { kind: 'quarantined', reason: '', remaining: Number(rest[0]) };
  if (status === FOREIGN_ENTRY) return FOREIGN;
  if (status === NOT_THE_HOLDER) return HELD;
  if (status === CLAIMED) return { kind: 'held', remaining: undefined, claim: Number(rest[0]) };
  if (status !== FREE) return UNEXPECTED;
  if (rest.length === 0) return GRANTED;
  const [marker = '', entry = ''] = rest;
  return { kind: 'granted', state: { entry: entryFrom(entry), marker } };
}

const UNEXPECTED: MasterReply = Object.freeze({ kind: 'refused', code: 'ERR', reason: 'unexpected reply' });
