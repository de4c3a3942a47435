import type { LockHolder } from './holder.js';

// One master, as far as the algorithm knows it. It answers every request exactly once and never throws: a failure is an
// answer, too. Requests to one master take effect in the order of the calls to `ask`.
export interface Server {
  readonly name: string;
  /**
   * It turned out to be the same server as another master, maybe while a request is under way.
   * @internal
   */
  readonly isExcluded?: boolean;
  ask(request: Request, reply: (answer: Reply) => void): void;
}

// What is in a request is a matter between the one who makes it and the server.
export interface Request {
  readonly op: string;
}

// Sets, or refreshes, the keys of one token.
export interface RoundRequest extends Request {
  // Lifetime of the keys in milliseconds.
  readonly ttl: number;
  // Set when a release, or a later round of the same token, supersedes this request. A request that is not on its way yet
  // must then not be sent any more, because it would arrive after its own release.
  withdrawn: boolean;
}

/** Success: acquired, extended or released. */
export interface Granted {
  /** The kind of answer. */
  readonly kind: 'granted';
  /**
   * The keys are there, but this does not show that they have been there all the time: they were gone before, and may have
   * been set again since another holder had them.
   */
  readonly healed?: boolean;
}

/** Another token holds one of the keys. */
export interface HeldByOther {
  /** The kind of answer. */
  readonly kind: 'held';
  /** Milliseconds until the holder's key expires; `undefined` if the master did not report it. */
  readonly remaining: number | undefined;
  /**
   * The holder of the first of the keys that are held; absent if the key was not set by this library, or is reserved for
   * the next holder.
   */
  readonly holder?: LockHolder;
  /** Whether an operator released the lock by force: its holder cannot extend it any more. */
  readonly revoked?: boolean;
}

/** One of the keys was absent, in the answer to an extension or a release, and no other token holds any. */
export interface Gone {
  /** The kind of answer. */
  readonly kind: 'gone';
}

/** There is no connection to the master. */
export interface UnreachableReply {
  /** The kind of answer. */
  readonly kind: 'unreachable';
  /** The reason, without secrets. */
  readonly reason: string;
  /** Whether the request may have reached the server before the connection broke. */
  readonly sent: boolean;
  /** Whether waiting cannot help: its settings or the server have to be changed, such as a wrong password. */
  readonly isPermanent?: boolean;
}

/** The master did not answer in time. */
export interface TimedOutReply {
  /** The kind of answer. */
  readonly kind: 'timeout';
  /** `false` if the master was known to be silent, so that the request was not sent. */
  readonly sent: boolean;
  /**
   * Milliseconds for which this process was blocked meanwhile, so that it could neither send nor receive. They are not
   * part of the time limit. Absent if they were few.
   */
  readonly blocked?: number;
}

/** The server answered with an error of its own, such as `NOAUTH`, `READONLY` or `OOM`. */
export interface Refused {
  /** The kind of answer. */
  readonly kind: 'refused';
  /** First word of the server's error. */
  readonly code: string;
  /** The rest of the error, without secrets. */
  readonly reason: string;
}

/** A time in which a master refuses to vote, because it may have lost locks that are held. */
export interface Quarantine {
  /** How long and why, for example `waits 9.8 s after a restart`. */
  readonly reason: string;
  /** Milliseconds until it votes. */
  readonly remaining: number;
}

/** The master has refused to vote and changed nothing, because it may have lost what it granted before. */
export interface QuarantinedReply extends Quarantine {
  /** The kind of answer. */
  readonly kind: 'quarantined';
}

/** A master's answer, discriminated by its `kind`, as far as the algorithm knows it. */
export type Reply = Granted | HeldByOther | Gone | UnreachableReply | TimedOutReply | Refused | QuarantinedReply;

export const HEALED: Granted = Object.freeze({ kind: 'granted', healed: true });
export const TIMED_OUT: TimedOutReply = Object.freeze({ kind: 'timeout', sent: true });
// In milliseconds: a shorter block is not the cause of a time-out.
const NOTEWORTHY_BLOCK = 50;

export function timedOut(blocked: number): TimedOutReply {
  return blocked < NOTEWORTHY_BLOCK ? TIMED_OUT : { ...TIMED_OUT, blocked: Math.round(blocked) };
}

// It has taken effect or never will.
export function isSettled(answer: Reply): boolean {
  return (answer.kind !== 'unreachable' && answer.kind !== 'timeout') || !answer.sent;
}

// The master lacks the keys, or may have lacked them.
export function isLacking(answer: Reply | undefined): boolean {
  if (answer?.kind === 'granted') return answer.healed === true;
  return answer?.kind === 'gone' || answer?.kind === 'held';
}

// May have taken effect or may still do so.
export function mayHaveReached(answer: Reply | undefined): boolean {
  if (answer?.kind === 'quarantined') return false;
  return answer === undefined || !('sent' in answer) || answer.sent;
}
