import type { Answer } from './master.interface.js';
import { show, showNames } from './shown.js';

/** What one master answered. `undefined`: the outcome was certain before it did. */
export interface MasterReport {
  /** Name of the master, without credentials. */
  readonly master: string;
  /** What it said. */
  readonly answer: Answer | undefined;
}

const BRAND = Symbol.for('nestjs-redlock:error');

/** Base of all errors of this library. */
export abstract class LockError extends Error {
  /** Stable, for programs. */
  abstract readonly code: string;
  /** Nest's own exception handling answers a request with this HTTP status, on Express and on Fastify. */
  abstract readonly statusCode: number;
  /** Names of resources and addresses of masters are for the log: the client gets the standard text of the status. */
  readonly expose = false;

  constructor(
    message: string,
    /** What was to be locked. */
    readonly resources: readonly string[] = [],
    /** What each master answered, as far as masters were asked. */
    readonly answers: readonly MasterReport[] = [],
  ) {
    super(message);
    this.name = new.target.name;
  }

  /** @internal */
  get [BRAND](): true {
    return true;
  }

  /** Same as {@link statusCode}: together with `expose` it makes an HTTP error that Nest 12 understands, too. */
  get status(): number {
    return this.statusCode;
  }
}

/** Somebody else held the resource until the waiting budget had ended. */
export class LockNotAcquiredError extends LockError {
  readonly code = 'LOCK_NOT_ACQUIRED';
  readonly statusCode = 423;

  constructor(
    resources: readonly string[],
    answers: readonly MasterReport[],
    /** Milliseconds for which the waiting budget allowed to wait. */
    readonly waited: number,
    /** Milliseconds after which the resource could be free, if its holder does not extend; where masters told. */
    readonly retryAfter: number | undefined,
  ) {
    const budget = waited > 0 ? ` within ${waited} ms` : '';
    super(
      `${showNames(resources)} is held by someone else: not acquired${budget}${tellAll(answers)}`,
      resources,
      answers,
    );
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
  ) {
    const needed = `${quorum} of ${masters} ${masters === 1 ? 'master' : 'masters'} must vote`;
    super(`cannot ${intent}: ${needed}${tellAll(answers)}`, resources, answers);
  }
}

/**
 * Why a lock was lost.
 *
 * - `expired`: its validity ended before a quorum agreed to extend it
 * - `owner-changed`: a quorum of masters says that somebody else holds it
 * - `max-hold`: it was kept for `maxHold`
 * - `shutdown`: the application closed before the work ended
 * - `released`: it had been released before
 */
export type LockLostCause = 'expired' | 'owner-changed' | 'max-hold' | 'shutdown' | 'released';

const LOST: Readonly<Record<LockLostCause, string>> = {
  expired: 'its validity ended before a quorum of masters agreed to extend it',
  'owner-changed': 'somebody else holds it now',
  'max-hold': 'it was kept for as long as `maxHold` allows',
  shutdown: 'the application shut down before the work ended',
  released: 'it has been released',
};

/** The lock is not held any more although its holder still relied on it. */
export class LockLostError extends LockError {
  readonly code = 'LOCK_LOST';
  readonly statusCode = 500;

  constructor(
    resources: readonly string[],
    /** Why. */
    override readonly cause: LockLostCause,
    answers: readonly MasterReport[] = [],
  ) {
    super(`lost the lock on ${showNames(resources)}: ${LOST[cause]}${tellAll(answers)}`, resources, answers);
  }
}

/** A call chain that holds a resource asks for it again without `reentrant: true`. */
export class LockReentryError extends LockError {
  readonly code = 'LOCK_REENTRY';
  readonly statusCode = 500;

  constructor(resources: readonly string[], held: readonly string[], reentrant: boolean) {
    super(
      reentrant
        ? `this call chain holds ${showNames(held)}, but not all of ${showNames(resources)} under one lock: ` +
            `take all of them together in the outer call`
        : `this call chain already holds ${showNames(held)}: the nested call for ${showNames(resources)} would wait for itself. ` +
            `Pass \`reentrant: true\` to run it inside the lock that is held`,
      resources,
    );
  }
}

/** The application is shutting down: nothing new is locked. */
export class LockServiceStoppedError extends LockError {
  readonly code = 'LOCK_SERVICE_STOPPED';
  readonly statusCode = 503;

  constructor(resources: readonly string[]) {
    super(`${showNames(resources)} was not acquired: the lock service is shutting down`, resources);
  }
}

/** An option that cannot work: names the option, its value and what it must be. */
export class RedlockConfigError extends LockError {
  readonly code = 'LOCK_CONFIG';
  readonly statusCode = 500;
  readonly #value: unknown;

  constructor(
    /** Name of the option. */
    readonly option: string,
    value: unknown,
    /** What it must be. */
    readonly requirement: string,
  ) {
    super(`${option} ${requirement}, got ${show(value)}`);
    this.#value = value;
  }

  /** What was given. Whoever prints or serializes the error does not find it: it may be long, or carry a password. */
  get value(): unknown {
    return this.#value;
  }
}

/**
 * Not by its class: with two copies of this package in one process, as ESM and as CommonJS or in two versions, the error
 * may come from the other one.
 */
export function isLockError(error: unknown): error is LockError {
  return error instanceof Error && BRAND in error;
}

/** Like {@link isLockError}, for a {@link LockNotAcquiredError}. */
export function isNotAcquired(error: unknown): error is LockNotAcquiredError {
  return isLockError(error) && error.code === 'LOCK_NOT_ACQUIRED';
}

function tellAll(answers: readonly MasterReport[]): string {
  if (answers.length === 0) return '';
  return ` (${answers.map(({ master, answer }) => `${master}: ${describeAnswer(answer)}`).join('; ')})`;
}

/** One master's answer in words. */
export function describeAnswer(answer: Answer | undefined): string {
  switch (answer?.kind) {
    case undefined:
      return 'not waited for';
    case 'granted':
      return 'granted';
    case 'held':
      return answer.remaining === undefined ? 'held' : `held for ${Math.ceil(answer.remaining)} ms more`;
    case 'unreachable':
      return `unreachable, ${answer.reason}`;
    case 'timeout':
      return answer.sent ? 'no answer in time' : 'silent, not asked';
    case 'quarantined':
      return `does not vote for ${Math.ceil(answer.remaining)} ms more, ${answer.reason} (see restartGuard)`;
    case 'refused':
      return `${answer.code} ${answer.reason}`.trim();
  }
}
