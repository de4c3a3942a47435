import { isLacking, type Reply } from './server.js';
import { counted, showNames } from './names.js';

/** The answer of one master. */
export interface MasterReport<R extends Reply = Reply> {
  /** Name of the master, without credentials. */
  readonly master: string;
  /** Its answer; `undefined` if the outcome was certain before it answered. */
  readonly answer: R | undefined;
}

export const BRAND = Symbol.for('nestjs-redlock:error');
// The name under which Node looks for the text to print instead of an object.
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Base class of all errors of this library. */
export abstract class LockError extends Error {
  /** A stable code for programs. */
  abstract readonly code: string;
  /** HTTP status with which Nest's own exception handling answers a request, on Express and on Fastify. */
  abstract readonly statusCode: number;
  constructor(
    message: string,
    /** The resources that the failed operation concerns. */
    readonly resources: readonly string[] = [],
    /**
     * The answer of each master, if masters were asked. Empty for a call that waited only for other calls in its process.
     */
    readonly answers: readonly MasterReport[] = [],
  ) {
    super(message);
    this.name = new.target.name;
    if (resources.length === 0) hide(this, 'resources');
    if (answers.length === 0) hide(this, 'answers');
  }

  /** @internal */
  get [BRAND](): true {
    return true;
  }

  /** Resource names and master addresses are for the log only: the client gets the standard message of the status. */
  get expose(): false {
    return false;
  }

  /** Same as {@link statusCode}. Together with `expose`, it makes an HTTP error that Nest 12 understands, too. */
  get status(): number {
    return this.statusCode;
  }

  /**
   * What `console.error` and loggers print: the stack. The message has the answers of the masters in words.
   * @internal
   */
  [INSPECT](): string {
    // The engine writes the first line of the stack before the name is set.
    return this.stack?.replace(/^Error(?=:)/, this.name) ?? String(this);
  }

  /**
   * What loggers that write JSON print.
   * @internal
   */
  toJSON(): object {
    const { name, code, message } = this;
    return Object.assign({}, this, { name, code, message });
  }
}

/** Too few masters could vote. */
export class QuorumUnavailableError extends LockError {
  readonly code = 'QUORUM_UNAVAILABLE';
  readonly statusCode = 503;

  constructor(
    intent: string,
    resources: readonly string[],
    answers: readonly MasterReport[],
    quorum: number,
    masters: number,
    advice = '',
  ) {
    const needed = `${quorum} of ${counted(masters, 'master')} must vote`;
    const end = advice === '' ? '' : `. ${advice}`;
    super(`cannot ${intent}: ${needed}${formatReports(answers)}${end}`, resources, answers);
  }
}

/**
 * Why a lock was lost.
 *
 * - `expired`: its validity ended before it was extended; the message says whether that was tried, and how it failed
 * - `owner-changed`: a quorum of masters reports another holder, or that an operator released it by force
 * - `gone`: its keys were gone from a quorum of masters, so that another holder may have had it
 * - `max-hold`: it was kept for `maxHold`
 * - `shutdown`: the application closed before the work ended
 * - `released`: it had already been released
 */
export type LockLostCause = 'expired' | 'owner-changed' | 'gone' | 'max-hold' | 'shutdown' | 'released';

const LOST: Readonly<Record<Exclude<LockLostCause, 'gone'>, string>> = {
  expired: 'its validity ended before a quorum of masters agreed to extend it',
  'owner-changed': 'another process holds it now',
  'max-hold': 'it was kept for as long as `maxHold` allows',
  shutdown: 'the application shut down before the work ended',
  released: 'it has been released',
};

/** The lock is no longer held although its holder still relied on it. */
export class LockLostError extends LockError {
  readonly code = 'LOCK_LOST';
  readonly statusCode = 500;

  constructor(
    resources: readonly string[],
    /** Why the lock was lost. */
    override readonly cause: LockLostCause,
    answers: readonly MasterReport[] = [],
    /** Explains the cause in the message. */
    explanation: string = explanationOf(cause, answers),
  ) {
    super(`lost the lock on ${showNames(resources)}: ${explanation}${formatReports(answers)}`, resources, answers);
  }
}

function explanationOf(cause: LockLostCause, answers: readonly MasterReport[]): string {
  if (cause === 'gone') {
    const lacking = answers.filter(({ answer }) => isLacking(answer)).length;
    return `the key was gone from ${lacking} of ${counted(answers.length, 'master')}: another holder may have had it`;
  }
  const isRevoked =
    cause === 'owner-changed' && answers.some(({ answer }) => answer?.kind === 'held' && answer.revoked);
  return isRevoked ? 'an operator released it by force' : LOST[cause];
}

/** The application is shutting down and acquires no new locks. */
export class LockServiceStoppedError extends LockError {
  readonly code = 'LOCK_SERVICE_STOPPED';
  readonly statusCode = 503;

  constructor(
    resources: readonly string[],
    /** Whether the call was waiting for another holder. If so, it counts as contention for `onLocked: 'skip'`. */
    readonly wasHeld = false,
  ) {
    super(`${showNames(resources)} was not acquired: the lock service is shutting down`, resources);
  }
}

// Of what an error shows when it is printed or serialized.
export function hide(error: LockError, ...names: string[]): void {
  for (const name of names) Object.defineProperty(error, name, { enumerable: false });
}

// With a space before, unless there are none.
export function formatReports(answers: readonly MasterReport[]): string {
  if (answers.length === 0) return '';
  return ` (${answers.map(({ master, answer }) => `${master}: ${describeReply(answer)}`).join('; ')})`;
}

export function describeReply(answer: Reply | undefined): string {
  switch (answer?.kind) {
    case undefined:
      return 'not waited for';
    case 'granted':
      return answer.healed ? 'it may have lacked the key before' : 'granted';
    case 'gone':
      return 'the key was gone';
    case 'held':
      return `${answer.revoked ? 'released by force, ' : ''}held${
        answer.remaining === undefined || answer.remaining <= 0 ? '' : ` for ${Math.ceil(answer.remaining)} ms more`
      }`;
    case 'unreachable':
      return answer.isPermanent ? answer.reason : `unreachable, ${answer.reason}`;
    case 'timeout':
      if (!answer.sent) return 'silent, not asked';
      return `no answer in time${answer.blocked === undefined ? '' : `, while this process was blocked for ${answer.blocked} ms`}`;
    case 'quarantined':
      return `${answer.reason}, then votes by itself (see restartGuard)`;
    case 'refused':
      return `${answer.code} ${answer.reason}`.trim();
  }
}
