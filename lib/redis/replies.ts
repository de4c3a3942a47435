import { type Answer, GRANTED, GRANTED_AMONG_OTHERS, type Held, type Refused } from '../core/master.interface.js';
import { ENDLESS, FREE, FREE_AMONG_OTHERS } from './script-answers.js';

/** Held, by a key of which nothing more is known, or which will not expire by itself. */
export const HELD: Held = Object.freeze({ kind: 'held', remaining: undefined });

/** Longer explanations help nobody. */
const REASON_LENGTH = 200;
/** Redis repeats the arguments of a command that it does not know. */
const ECHO = /,? with args beginning with:.*/;
/** Where in the script the error occurred. Valkey 9 leaves out the hash of the script. */
const PLACE = / script: (?:[0-9a-f]{40}, )?on @user_script.*/;
/** In a script, a missing permission has the code ERR. The second wording is that of Redis 7.0. */
const NO_PERMISSION = /^ERR (?:ACL failure in script: |(?=The user executing the script can't ))/;

/** Since Redis 7.2, the name of the user that lacks the permission. */
const NAMED_USER = /\bUser .+ has no permissions/;

/** What the script's answer to one request means. */
export function answerFrom(reply: unknown): Answer {
  if (reply === FREE) return GRANTED;
  if (reply === FREE_AMONG_OTHERS) return GRANTED_AMONG_OTHERS;
  if (reply === ENDLESS) return HELD;
  if (typeof reply === 'string') return grantWithToken(reply);
  if (typeof reply === 'number' && reply >= 0) return { kind: 'held', remaining: reply };
  return { kind: 'refused', code: 'ERR', reason: `unexpected reply of type ${typeof reply}` };
}

/** Status and fencing token come as one text, since a version of the client misreads large integers. */
function grantWithToken(reply: string): Answer {
  const gap = reply.indexOf(' ');
  const fence = Number(reply.slice(gap + 1));
  return reply.startsWith(`${FREE_AMONG_OTHERS}`)
    ? { kind: 'granted', crowded: true, fence }
    : { kind: 'granted', fence };
}

/** What a server's reply to `SET ... NX` means. */
export function answerToSet(reply: unknown): Answer {
  return reply === null ? HELD : GRANTED;
}

/** What TIME says, in milliseconds. */
export function millisecondsFrom(time: unknown): number {
  const [seconds, microseconds] = time as readonly [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** A server's error, split into its code and the rest, without what must not be told. */
export function refusalFrom(error: Error, secrets: readonly string[]): Refused {
  const message = tell(error, secrets).replace(NO_PERMISSION, 'NOPERM ');
  const [, code = 'ERR', reason = message] = /^([A-Z][A-Z0-9_]*)(?: |$)(.*)/.exec(message) ?? [];
  return { kind: 'refused', code, reason };
}

/** Whether an error is the server's answer and not a failure of the connection. By name: of whatever ioredis. */
export function isReply(error: unknown): error is Error {
  return isObject(error) && error['name'] === 'ReplyError';
}

/** The message of an error, without what must not be told. */
export function tell(error: unknown, secrets: readonly string[]): string {
  const [line = ''] = messageOf(error).split(/[\r\n]/, 1);
  const text = line.replace(ECHO, '').replace(PLACE, '').replace(NAMED_USER, 'This user has no permissions');
  // The longest first: one may be a part of another.
  const safe = [...secrets]
    .sort((a, b) => b.length - a.length)
    .reduce((safer, secret) => safer.replaceAll(secret, '***'), text);
  return safe.slice(0, REASON_LENGTH);
}

// Without instanceof: errors of sockets may come from another realm than this code.
function messageOf(error: unknown): string {
  const { message, errors, code } = isObject(error) ? error : {};
  if (typeof message === 'string' && message !== '') return message;
  // Several addresses of one host were tried: Node gives the errors, but no message.
  if (Array.isArray(errors)) return errors.map(messageOf).join(', ');
  return typeof code === 'string' ? code : 'unknown error';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
