import type { MasterReply, Quarantine } from './master.interface.js';
import { counted, formatValue, showNames } from './display.js';
import type { LockHolder } from './holder.js';

/** The answer of one master. */
export interface MasterReport {
  /** Name of the master, without credentials. */
  readonly master: string;
  /** Its answer; `undefined` if the outcome was certain before it answered. */
  readonly answer: MasterReply | undefined;
}

const BRAND = Symbol.for('nestjs-redlock:error');
// The name under which Node looks for the text to print in place of an object.
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

/** Another holder kept the resource until the waiting budget ended. */
export class LockNotAcquiredError extends LockError {
  readonly code = 'LOCK_NOT_ACQUIRED';
  readonly statusCode = 423;

  constructor(
    resources: readonly string[],
    answers: readonly MasterReport[],
    /** The waiting budget in milliseconds. */
    readonly waited: number,
    /**
     * Milliseconds after which the resource could be free if its holder does not extend the lock; of permits, after which
     * one of them could be. `undefined` if too few masters reported it.
     */
    readonly retryAfter: number | undefined,
    /** The number of permits of which none was free; `undefined` for a lock. */
    readonly permits?: number,
  ) {
    const budget = waited > 0 ? ` within ${waited} ms` : '';
    // Without an answer, it waited in the queue of its process, which asks the masters for its first entry only.
    const isInLine = answers.length === 0 && waited > 0;
    const names = showNames(resources);
    const state = permits === undefined ? stateOf(names, answers, isInLine) : stateOfPermits(names, permits, isInLine);
    super(`${state}: not acquired${budget}${formatReports(answers)}`, resources, answers);
    if (permits === undefined) hide(this, 'permits');
  }

  /**
   * The holder of the resource, as most masters answered; `undefined` if they named no holder, and for permits, which have
   * several.
   */
  get holder(): LockHolder | undefined {
    return this.permits === undefined ? majorityHolder(this.answers) : undefined;
  }
}

function stateOf(names: string, answers: readonly MasterReport[], isInLine: boolean): string {
  const holder = majorityHolder(answers);
  const unnamed = isInLine ? 'held or awaited by another call in this process' : 'held by another holder';
  return `${names} is ${holder ? `held by ${holder.instance} since ${holder.since.toISOString()}` : unnamed}`;
}

// The masters answered for the permits that were tried, so the message names none of their holders.
function stateOfPermits(names: string, permits: number, isInLine: boolean): string {
  const all = permits === 1 ? 'the only permit' : `all ${permits} permits`;
  if (isInLine) return `${all} of ${names} ${permits === 1 ? 'is' : 'are'} held or awaited by calls in this process`;
  const none = permits === 1 ? 'the only permit' : `none of the ${permits} permits`;
  return `${none} of ${names} was ${permits === 1 ? 'not ' : ''}free`;
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
 * - `max-hold`: it was kept for `maxHold`
 * - `shutdown`: the application closed before the work ended
 * - `released`: it had already been released
 */
export type LockLostCause = 'expired' | 'owner-changed' | 'max-hold' | 'shutdown' | 'released';

const LOST: Readonly<Record<LockLostCause, string>> = {
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
  const isRevoked =
    cause === 'owner-changed' && answers.some(({ answer }) => answer?.kind === 'held' && answer.revoked);
  return isRevoked ? 'an operator released it by force' : LOST[cause];
}

/**
 * A call chain that holds a resource tried to lock it again without `reentrant: true`, or with it, but without holding
 * all of the requested resources under one lock.
 */
export class LockReentryError extends LockError {
  readonly code = 'LOCK_REENTRY';
  readonly statusCode = 500;

  constructor(resources: readonly string[], held: readonly string[], problem: ReentryProblem) {
    const [outer, inner] = [showNames(held), showNames(resources)];
    const messages: Readonly<Record<ReentryProblem, string>> = {
      nested:
        `this call chain already holds ${outer}: the nested call for ${inner} would wait for itself. ` +
        `Pass \`reentrant: true\` to withLock or @WithLock to run it inside the lock that is held`,
      permit:
        `this call chain already holds a permit of ${outer}: chains that hold one and ask for another would wait for ` +
        `each other once all are taken. Pass \`reentrant: true\` to run the nested call inside the permit that is held`,
      partial:
        `this call chain holds ${outer}, but not all of ${inner} under one lock: ` +
        `take all of them together in the outer call`,
      upgrade:
        `this call chain holds a shared lock on ${outer}: the nested exclusive call for ${inner} would wait for it. ` +
        `Take the exclusive lock in the outer call`,
    };
    super(messages[problem], resources);
  }
}

/**
 * Why a nested call cannot run inside a lock or a permit that the call chain holds: it does not ask for it, the lock does
 * not cover all of its resources, or the lock is shared and the call is not.
 */
export type ReentryProblem = 'nested' | 'permit' | 'partial' | 'upgrade';

/**
 * With `lockOrder: 'error'`: a call chain that holds a lock asked for another one, and other call chains have taken these
 * locks in another order. The message names the places. Both could wait for each other until their budgets end.
 */
export class LockOrderError extends LockError {
  readonly code = 'LOCK_ORDER';
  readonly statusCode = 500;

  constructor(resources: readonly string[], cycle: string) {
    super(cycle, resources);
  }
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

/** An option is invalid. The message names the option, its value and the requirement. */
export class RedlockConfigError extends LockError {
  readonly code = 'LOCK_CONFIG';
  readonly statusCode = 500;
  readonly #value: unknown;

  constructor(
    /** Name of the option. */
    readonly option: string,
    value: unknown,
    /** What the option must be. */
    readonly requirement: string,
    /** For a mistake that the value alone does not show. */
    message = `${option} ${requirement}, got ${formatValue(value)}`,
  ) {
    super(message);
    this.#value = value;
    // The message has them. Node prints the properties of an uncaught error, whatever the error wants to print.
    hide(this, 'option', 'requirement', 'code', 'statusCode');
  }

  /** The given value. Printing or serializing the error omits it, because it may be long or contain a password. */
  get value(): unknown {
    return this.#value;
  }
}

// Not by its class: with two copies of this package in one process, as ESM and as CommonJS or in two versions, the
// error may come from the other copy.
export function isLockError(error: unknown): error is LockError {
  return error instanceof Error && BRAND in error;
}

export function isConfigError(error: unknown): error is RedlockConfigError {
  return isLockError(error) && error.code === 'LOCK_CONFIG';
}

export function isNotAcquired(error: unknown): error is LockNotAcquiredError {
  return isLockError(error) && error.code === 'LOCK_NOT_ACQUIRED';
}

function hide(error: LockError, ...names: string[]): void {
  for (const name of names) Object.defineProperty(error, name, { enumerable: false });
}

// With a space before, unless there are none.
export function formatReports(answers: readonly MasterReport[]): string {
  if (answers.length === 0) return '';
  return ` (${answers.map(({ master, answer }) => `${master}: ${describeReply(answer)}`).join('; ')})`;
}

// More than half of the masters that reported on the resource must name the holder.
export function majorityHolder(answers: readonly MasterReport[]): LockHolder | undefined {
  const holders = answers.flatMap(({ answer }) => (answer?.kind === 'held' && answer.holder ? [answer.holder] : []));
  const isSame = (one: LockHolder, other: LockHolder): boolean =>
    one.instance === other.instance && one.since.getTime() === other.since.getTime();
  const count = (holder: LockHolder): number => holders.filter((other) => isSame(holder, other)).length;
  const reports = answers.filter(({ answer }) => answer?.kind === 'held' || answer?.kind === 'granted').length;
  return holders.find((holder) => 2 * count(holder) > reports);
}

export function isStopped(error: unknown): error is LockServiceStoppedError {
  return isLockError(error) && error.code === 'LOCK_SERVICE_STOPPED';
}

export function describeReply(answer: MasterReply | undefined): string {
  switch (answer?.kind) {
    case undefined:
      return 'not waited for';
    case 'granted':
      return 'granted';
    case 'held':
      return `${answer.revoked ? 'released by force, ' : ''}held${
        answer.remaining === undefined || answer.remaining <= 0 ? '' : ` for ${Math.ceil(answer.remaining)} ms more`
      }`;
    case 'unreachable':
      return answer.isPermanent ? answer.reason : `unreachable, ${answer.reason}`;
    case 'timeout':
      return answer.sent ? 'no answer in time' : 'silent, not asked';
    case 'quarantined':
      return `does not vote ${timeOf(answer)}, ${answer.reason} (see restartGuard)`;
    case 'refused':
      return `${answer.code} ${answer.reason}`.trim();
  }
}

// Its wait is not known before its data is.
function timeOf({ remaining }: Quarantine): string {
  return remaining > 1 ? `for up to ${Math.ceil(remaining)} ms more` : 'yet';
}
