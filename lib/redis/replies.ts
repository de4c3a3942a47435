import {
  type MasterReply,
  GRANTED,
  GRANTED_WITH_WAITERS,
  HEALED,
  type HeldReply,
  type RefusedReply,
} from '../core/master.interface.js';
import {
  ENDLESS,
  FREE,
  FREE_WITH_WAITERS,
  HEALED as HEALED_REPLY,
  NOT_THE_HOLDER,
  PICKED,
} from './scripts/statuses.js';
import { holderIn } from '../core/holder.js';

/** Held, by a key whose remaining time is unknown, or which does not expire by itself. */
export const HELD: HeldReply = Object.freeze({ kind: 'held', remaining: undefined });

/** Longer explanations are cut: they do not help. */
const REASON_LENGTH = 200;
/** Redis repeats the arguments of a command that it does not know. */
const ECHO = /,? with args beginning with:.*/;
/** The place of the error in the script. Valkey 9 omits the hash of the script. */
const PLACE = / script: (?:[0-9a-f]{40}, )?on @user_script.*/;
/** In a script, a missing permission has the code ERR. The second wording is that of Redis 7.0. */
const NO_PERMISSION = /^ERR (?:ACL failure in script: |(?=The user executing the script can't ))/;

/** Since Redis 7.2, the message contains the name of the user that lacks the permission. */
const NAMED_USER = /\bUser .+ has no permissions/;

/** Converts the script's reply to one request into an answer. */
export function replyFrom(reply: unknown): MasterReply {
  if (reply === FREE) return GRANTED;
  if (reply === FREE_WITH_WAITERS) return GRANTED_WITH_WAITERS;
  if (reply === HEALED_REPLY) return HEALED;
  if (reply === NOT_THE_HOLDER) return HELD;
  if (typeof reply === 'string') return fromText(reply);
  return { kind: 'refused', code: 'ERR', reason: `unexpected reply of type ${typeof reply}` };
}

/** The status and what follows come as one string: one version of the client misreads large integers. */
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

/** Converts a server's reply to `SET ... NX` into an answer. */
export function replyToSet(reply: unknown): MasterReply {
  return reply === null ? HELD : GRANTED;
}

/** Converts the reply to TIME into milliseconds. */
export function millisecondsFrom(time: unknown): number {
  const [seconds, microseconds] = time as readonly [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Splits a server's error into its code and the rest, and removes the secrets. */
export function refusalFrom(error: Error, secrets: readonly string[]): RefusedReply {
  const message = redactedMessageOf(error, secrets).replace(NO_PERMISSION, 'NOPERM ');
  const [, code = 'ERR', reason = message] = /^([A-Z][A-Z0-9_]*)(?: |$)(.*)/.exec(message) ?? [];
  return { kind: 'refused', code, reason };
}

/**
 * Whether an error is the server's reply and not a failure of the connection. Compares the name, which works with every
 * copy of ioredis.
 */
export function isReply(error: unknown): error is Error {
  return isObject(error) && error['name'] === 'ReplyError';
}

/** The message of an error, without secrets. */
export function redactedMessageOf(error: unknown, secrets: readonly string[]): string {
  const [line = ''] = messageOf(error).split(/[\r\n]/, 1);
  const text = line.replace(ECHO, '').replace(PLACE, '').replace(NAMED_USER, 'this user has no permissions');
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
