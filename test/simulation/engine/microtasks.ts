import { setFlagsFromString } from 'node:v8';

/**
 * Runs every promise reaction that is due, and all reactions that follow, before it returns. It does nothing inside a
 * promise reaction.
 *
 * It uses an internal function of V8, because a turn of the event loop after every event of the simulation would take
 * longer than all the rest.
 */
export const settlePromises: () => void = compileCheckpoint();

function compileCheckpoint(): () => void {
  setFlagsFromString('--allow-natives-syntax');
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  return new Function('%PerformMicrotaskCheckpoint()') as () => void;
}
