import { type Marker, markerFrom } from './guard/marker.js';
import {
  GRANTED,
  GRANTED_WITH_WAITERS,
  HEALED,
  HELD,
  type MasterReply,
  type RefusedReply,
} from '../core/master.interface.js';
import {
  ENDLESS,
  FREE,
  FREE_WITH_WAITERS,
  EXTENDED_AFTER_HEAL as HEALED_REPLY,
  NOT_THE_HOLDER,
  PICKED,
} from './scripts/constants.js';
import { holderIn } from '../core/holder.js';

// Read atomically with the marker.
export interface ServerIdentity {
  // Identifies one run of a server process; empty if the user lacks the permission for INFO.
  readonly run: string;
  // Identifies one history of the data; empty if the user lacks the permission for INFO.
  readonly replid: string;
  // The server was a replica before it had this history.
  readonly wasPromoted: boolean;
  readonly replicas: number;
  readonly version: string | undefined;
  readonly role: string | undefined;
  readonly mode: string | undefined;
  readonly hasAppendOnlyFile: boolean;
  // The policy by which the server drops keys when its memory is full; `undefined` if it drops none.
  readonly eviction: string | undefined;
  // Milliseconds by its wall clock. For display only.
  readonly uptime: number;
  // Its wall clock, in milliseconds.
  readonly time: number;
  readonly marker: Marker | undefined;
}

const OLDEST = 7;
const NEVER_PROMOTED = /^(?:0+|)$/;

export const SECTIONS = {
  server: ['run_id', 'redis_version', 'valkey_version', 'redis_mode', 'server_mode', 'uptime_in_seconds'],
  replication: ['role', 'connected_slaves', 'master_replid', 'master_replid2'],
  memory: ['maxmemory', 'maxmemory_policy'],
  persistence: ['aof_enabled'],
} as const;

export type InfoField = (typeof SECTIONS)[keyof typeof SECTIONS][number];

// In the order in which a report has them.
export const INFO_FIELDS: readonly InfoField[] = Object.values(SECTIONS).flat();

// The reply of the script in `scripts/report.lua`: the time, `INFO_FIELDS` and the marker.
export function parseServerIdentity(reply: unknown): ServerIdentity {
  const values = (reply as unknown[]).map(String);
  const [time, run, redis, valkey, redisMode, mode, uptime, role, replicas, replid, replid2, limit, policy, aof] =
    values;
  return {
    run: run ?? '',
    replid: replid ?? '',
    wasPromoted: !NEVER_PROMOTED.test(replid2 ?? ''),
    replicas: Number(replicas ?? 0),
    version: valkey || redis || undefined,
    role: role || undefined,
    mode: redisMode || mode || undefined,
    hasAppendOnlyFile: aof === '1',
    eviction: Number(limit ?? 0) > 0 && policy !== 'noeviction' ? policy : undefined,
    uptime: Number(uptime ?? 0) * 1_000,
    time: Number(time),
    marker: markerFrom(values.slice(1 + INFO_FIELDS.length), Number(time)),
  };
}

// The same without a marker, from the answer to INFO. `time` in milliseconds.
export function parseInfo(info: string, time: number): ServerIdentity {
  const fields = new Map(info.split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line]));
  const valueOf = (name: InfoField): string => fields.get(name)?.slice(name.length + 1) ?? '';
  return parseServerIdentity([time, ...INFO_FIELDS.map(valueOf)]);
}

// Protocol 8.10
export function faultOf({ role, mode, version }: ServerIdentity): string | undefined {
  if (role === 'slave') return 'it is a replica, whose data may be older than what its primary has acknowledged';
  if (mode === 'cluster')
    return 'it is a node of a cluster, which is not an independent master: give the whole cluster as redis+cluster://host:port';
  return faultOfVersion(version);
}

export function faultOfVersion(version: string | undefined): string | undefined {
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST) return undefined;
  return `its version ${version} is older than ${OLDEST}.0: upgrade the server, or use another one`;
}

// The marker or the seal is not the one that this process knows.
export const LOST_DATA = Object.freeze({
  ...{ kind: 'refused', code: 'UNMARKED', reason: 'its data was lost or replaced' },
} as const) satisfies MasterReply;

// Longer explanations are cut: they do not help.
const REASON_LENGTH = 200;
// Redis repeats the arguments of a command that it does not know.
const ECHO = /,? with args beginning with:.*/;
// The place of the error in the script. Valkey 9 omits the hash of the script.
const PLACE = / script: (?:[0-9a-f]{40}, )?on @user_script.*/;
// In a script, a missing permission has the code ERR. The second wording is that of Redis 7.0.
const NO_PERMISSION = /^ERR (?:ACL failure in script: |(?=The user executing the script can't ))/;

// Since Redis 7.2, the message contains the name of the user that lacks the permission.
const NAMED_USER = /\bUser .+ has no permissions/;

// The wordings of servers have no secret in them, and a password such as "user" would hide what they say.
const MISSING_PERMISSION = /^NOPERM (?:this user has no permissions|No permissions to |The user executing the script )/;

export function replyFrom(reply: unknown): MasterReply {
  if (reply === FREE) return GRANTED;
  if (reply === FREE_WITH_WAITERS) return GRANTED_WITH_WAITERS;
  if (reply === HEALED_REPLY) return HEALED;
  if (reply === NOT_THE_HOLDER) return HELD;
  if (typeof reply === 'string') return fromText(reply);
  return { kind: 'refused', code: 'ERR', reason: `unexpected reply of type ${typeof reply}` };
}

// The status and what follows come as one string: one version of the client misreads large integers.
function fromText(reply: string): MasterReply {
  const [, status, number = '', signature = ''] = /^(-?\d+) (\d*)(.*)$/s.exec(reply) ?? [];
  if (Number(status) === FREE) return { kind: 'granted', fence: Number(number) };
  if (Number(status) === PICKED) {
    return { kind: 'granted', picked: Number(number), ...(signature === '!' && { hasWaiters: true }) };
  }
  const [, sharedBy] = /^\+(\d+)$/.exec(signature) ?? [];
  const holder = holderIn(signature);
  return {
    kind: 'held',
    remaining: Number(status) === ENDLESS ? undefined : Number(status),
    ...(number !== '' && { waiting: Number(number) }),
    ...(holder && { holder }),
    ...(signature === '!' && { revoked: true }),
    ...(sharedBy !== undefined && { sharedBy: Number(sharedBy) }),
  };
}

// Of TIME.
export function isTime(time: unknown): boolean {
  return Array.isArray(time) && time.length === 2 && Number.isFinite(Number(time[0]) + Number(time[1]));
}

export function millisecondsFrom(time: unknown): number {
  const [seconds, microseconds] = time as readonly [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

export function refusalFrom(error: Error, secrets: readonly string[]): RefusedReply {
  const plain = lineOf(error).replace(NO_PERMISSION, 'NOPERM ');
  const message = MISSING_PERMISSION.test(plain) ? plain : redacted(plain, secrets);
  const [, code = 'ERR', reason = message] = /^([A-Z][A-Z0-9_]*)(?: |$)(.*)/.exec(message) ?? [];
  return { kind: 'refused', code, reason };
}

// Compares the name, which works with every copy of ioredis.
export function isReply(error: unknown): error is Error {
  return typeof error === 'object' && (error as Partial<Error> | null)?.name === 'ReplyError';
}

export function redactedMessageOf(error: unknown, secrets: readonly string[]): string {
  return redacted(lineOf(error), secrets);
}

function lineOf(error: unknown): string {
  const [line = ''] = messageOf(error).split(/[\r\n]/, 1);
  return line.replace(ECHO, '').replace(PLACE, '').replace(NAMED_USER, 'this user has no permissions');
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
