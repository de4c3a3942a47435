import { LockError } from '../redlock/errors.js';
import { showNames } from '../redlock/names.js';

// A queue that starts a task at the end of another one starts it in the call chain of that one.
const INHERITED =
  'If neither call contains the other, a queue or pool has run this one in the call chain of the holder: ' +
  'give it AsyncResource.bind(task)';

/**
 * A call chain that holds a resource tried to lock it again without `reentrant: true`, or with it, but without holding
 * all of the requested resources under one lock.
 */
export class LockReentryError extends LockError {
  readonly code = 'LOCK_REENTRY';
  readonly statusCode = 500;

  constructor(
    resources: readonly string[],
    held: readonly string[],
    problem: ReentryProblem,
    /** The decorated method that holds the lock; `undefined` for `withLock`. */
    caller?: string,
  ) {
    const [outer, inner] = [showNames(held) + (caller === undefined ? '' : ` (${caller})`), showNames(resources)];
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
    super(`${messages[problem]}. ${INHERITED}`, resources);
  }
}

/**
 * Why a nested call cannot run inside a lock or a permit that the call chain holds: it does not ask for it, the lock does
 * not cover all of its resources, or the lock is shared and the call is not.
 */
export type ReentryProblem = 'nested' | 'permit' | 'partial' | 'upgrade';
