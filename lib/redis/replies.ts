import {
  GRANTED,
  GONE,
  GONE_WITH_WAITERS,
  GRANTED_WITH_WAITERS,
  HELD,
  type MasterReply,
  type RefusedReply,
} from '../masters/master.interface.js';
import { ENDLESS } from './scripts/constants.js';
import * as WORDS from './scripts/replies.js';
import { holderIn } from '../redlock/holder.js';

// What the restart gate of a server says.
export interface GateReport {
  // Of the marker, which may be of an earlier run; both are empty if there is none.
  readonly run: string;
  readonly from: string;
  // Milliseconds until the server votes.
  readonly wait: number;
  // Why the marker was written by this call: `restart`, or `new` where there was none. Empty if it was not.
  readonly cause: string;
}

// Read atomically with the marker.
export interface ServerIdentity {
  // Identifies one run of a server process; empty if the user lacks the permission for INFO.
  readonly run: string;
  readonly version: string | undefined;
  readonly role: string | undefined;
  readonly mode: string | undefined;
  // The policy by which the server drops keys when its memory is full; `undefined` if it drops none.
  readonly eviction: string | undefined;
  // Milliseconds by its wall clock. For display only.
  readonly uptime: number;
  // Its wall clock, in milliseconds.
  readonly time: number;
  readonly gate: GateReport;
}

const OLDEST = 7;

export const SECTIONS = {
  server: ['run_id', 'redis_version', 'valkey_version', 'redis_mode', 'server_mode', 'uptime_in_seconds'],
  replication: ['role'],
  memory: ['maxmemory', 'maxmemory_policy'],
} as const;

export type InfoField = (typeof SECTIONS)[keyof typeof SECTIONS][number];

// In the order in which a report has them.
export const INFO_FIELDS: readonly InfoField[] = Object.values(SECTIONS).flat();

// The reply of the script in `scripts/report.lua`: the time, `INFO_FIELDS` and the gate.
export function parseServerIdentity(reply: unknown): ServerIdentity {
  const values = (reply as unknown[]).map(String);
  const [markedRun = '', from = '', wait = 0, cause = ''] = values.slice(1 + INFO_FIELDS.length);
  const [time, run, redis, valkey, redisMode, mode, uptime, role, limit, policy] = values;
  return {
    run: run ?? '',
    version: valkey || redis || undefined,
    role: role || undefined,
    mode: redisMode || mode || undefined,
    eviction: Number(limit ?? 0) > 0 && policy !== 'noeviction' ? policy : undefined,
    uptime: Number(uptime ?? 0) * 1_000,
    time: Number(time),
    gate: { run: markedRun, from, wait: Number(wait), cause },
  };
}

// The same without a marker, from the answer to INFO. `time` in milliseconds.
export function parseInfo(info: string, time: number): ServerIdentity {
  const fields = new Map(info.split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line]));
  const valueOf = (name: InfoField): string => fields.get(name)?.slice(name.length + 1) ?? '';
  return parseServerIdentity([time, ...INFO_FIELDS.map(valueOf)]);
}

// Why a server cannot be a master.
// Protocol 8.4
export function faultOf({ role, mode, version, run }: ServerIdentity, isGuarded = false): string | undefined {
  if (role === 'slave') return 'it is a replica, whose data may be older than what its primary has acknowledged';
  if (mode === 'cluster')
    return 'it is a node of a cluster, which is not an independent master: give the whole cluster as redis+cluster://host:port';
  if (run === '' && isGuarded) {
    return 'its user may not use INFO in scripts, which the restart guard needs: ACL SETUSER <its user> +info, or restartGuard: false';
  }
  return faultOfVersion(version);
}

function faultOfVersion(version: string | undefined): string | undefined {
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST) return undefined;
  return `its version ${version} is older than ${OLDEST}.0: upgrade the server, or use another one`;
}

// Longer explanations are cut: they do not help.
const REASON_LENGTH = 200;
// Redis repeats the arguments of a command that it does not know.
const ECHO = /,? with args beginning with:.*/;
// Where in the script the error is. Valkey 9 omits the hash of the script.
const LOCATION = / script: (?:[0-9a-f]{40}, )?on @user_script.*/;
// Begins the error of a server that refuses to vote because its marker can be neither read nor written.
export const GATE_MARK = 'GATE ';
export const FOREIGN_MARKER =
  'WRONGTYPE another program has overwritten the marker of the restart guard: delete the key that ends in \\0run';
// In a script, a missing permission has the code ERR. The second wording is that of Redis 7.0.
const NO_PERMISSION = /^ERR (?:ACL failure in script: |(?=The user executing the script can't ))/;

// Since Redis 7.2, the message contains the name of the user that lacks the permission.
const NAMED_USER = /\bUser .+ has no permissions/;

// The wordings of servers have no secret in them, and a password such as "user" would hide what they say.
const MISSING_PERMISSION = /^NOPERM (?:this user has no permissions|No permissions to |The user executing the script )/;

// The values for so many requests, and `from` behind them; `undefined` for anything else, which what stands between may
// answer.
export function valuesFrom(reply: unknown, requests: number): readonly unknown[] | undefined {
  const values = typeof reply === 'string' ? allFree(reply, requests) : (reply as readonly unknown[]);
  if (!Array.isArray(values)) return undefined;
  return values.length === requests || values.length === requests + 1 ? values : undefined;
}

function allFree(reply: string, requests: number): readonly unknown[] | undefined {
  if (!reply.startsWith(WORDS.ALL_FREE)) return undefined;
  const values = Array<unknown>(requests).fill(WORDS.FREE);
  const from = reply.slice(WORDS.ALL_FREE.length);
  if (from !== '') values.push(from);
  return values;
}

export function replyFrom(reply: unknown): MasterReply {
  if (reply === WORDS.FREE) return GRANTED;
  if (reply === WORDS.FREE_WITH_WAITERS) return GRANTED_WITH_WAITERS;
  if (reply === WORDS.GONE) return GONE;
  if (reply === WORDS.GONE_WITH_WAITERS) return GONE_WITH_WAITERS;
  if (reply === WORDS.NOT_THE_HOLDER) return HELD;
  return (typeof reply === 'string' && fromText(reply)) || UNEXPECTED;
}

export const UNEXPECTED: RefusedReply = Object.freeze({ kind: 'refused', code: 'ERR', reason: 'unexpected reply' });

// The word and what follows come as one string: one version of the client misreads large integers.
function fromText(reply: string): MasterReply | undefined {
  const [, word = '', number = '', waiting = '', signature = ''] = /^([a-z]+) (-?\d+) ?(\d*)(.*)$/s.exec(reply) ?? [];
  switch (word) {
    case WORDS.DRAWN:
      return { kind: 'granted', fence: Number(number) };
    case WORDS.QUARANTINED:
      // The master knows the reason.
      return { kind: 'quarantined', reason: '', remaining: Number(number) }; // @mutant quarantined-votes-counted
    case WORDS.PICKED:
      return { kind: 'granted', picked: Number(number), ...(signature === '!' && { hasWaiters: true }) };
    case WORDS.HELD: {
      const [, sharedBy] = /^\+(\d+)$/.exec(signature) ?? [];
      const holder = holderIn(signature);
      return {
        kind: 'held',
        remaining: Number(number) === ENDLESS ? undefined : Number(number),
        ...(waiting !== '' && { waiting: Number(waiting) }),
        ...(holder && { holder }),
        ...(signature === '!' && { revoked: true }),
        ...(sharedBy !== undefined && { sharedBy: Number(sharedBy) }),
      };
    }
    default:
      return undefined;
  }
}

export function refusalFrom(error: Error, secrets: readonly string[]): RefusedReply {
  const plain = lineOf(error).replace(NO_PERMISSION, 'NOPERM ');
  const message = MISSING_PERMISSION.test(plain) ? plain : redacted(plain, secrets);
  const [, code = 'ERR', reason = message] = /^([A-Z][A-Z0-9_]*)(?: |$)(.*)/.exec(message) ?? [];
  return { kind: 'refused', code, reason, ...(isAtGate(error) && { isVital: true, isAtGate: true }) };
}

function isAtGate(error: unknown): boolean {
  return messageOf(error).startsWith(GATE_MARK);
}

// Compares the name, which works with every copy of ioredis.
export function isReply(error: unknown): error is Error {
  return typeof error === 'object' && (error as Partial<Error> | null)?.name === 'ReplyError';
}

export function redactedMessageOf(error: unknown, secrets: readonly string[]): string {
  return redacted(lineOf(error), secrets);
}

function lineOf(error: unknown): string {
  const [text = ''] = messageOf(error).split(/[\r\n]/, 1);
  const line = isAtGate(error) ? text.slice(GATE_MARK.length).replace(/^WRONGTYPE.*/, FOREIGN_MARKER) : text;
  return line.replace(ECHO, '').replace(LOCATION, '').replace(NAMED_USER, 'this user has no permissions');
}

function redacted(text: string, secrets: readonly string[]): string {
  // Longest first, because one secret may be part of another.
  const safe = [...secrets]
    .sort((a, b) => b.length - a.length)
    .reduce((safer, secret) => safer.replaceAll(secret, '***'), text);
  return safe.slice(0, REASON_LENGTH);
}

// No `instanceof`: errors of sockets may come from another realm than this code.
function messageOf(error: unknown): string {
  const { message, errors, code } = isObject(error) ? error : {};
  if (typeof message === 'string' && message !== '') return message;
  // If several addresses of one host were tried, Node reports the errors, but no message.
  if (Array.isArray(errors)) return errors.map(messageOf).join(', ');
  return typeof code === 'string' ? code : 'unknown error';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
