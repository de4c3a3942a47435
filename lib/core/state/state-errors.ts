import { LockError, type MasterReport, tellAll } from '../errors.js';
import { showNames } from '../display.js';

/**
 * Too many masters have lost their data since the state was written: the last value may be lost. A newer value than the
 * survivor may have been acknowledged.
 */
export class StateUncertainError extends LockError {
  readonly code = 'LOCK_STATE_UNCERTAIN';
  readonly statusCode = 503;

  constructor(
    resources: readonly string[],
    answers: readonly MasterReport[],
    /** The newest value that is left; `undefined` if there is none. */
    readonly survivor: unknown,
  ) {
    super(
      `the state of ${showNames(resources)} is uncertain, because masters have lost their data since it was written: ` +
        `read it with { onUncertain: 'newest' } to go on with the newest value that is left${tellAll(answers)}`,
      resources,
      answers,
    );
  }
}
