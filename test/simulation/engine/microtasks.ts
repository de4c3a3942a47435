import { setFlagsFromString } from 'node:v8';

/**
 * Runs every promise reaction that is due, and those that follow from them, before it returns. Not from inside a promise
 * reaction, where it does nothing.
 *
 * V8's own way to do it: a turn of the event loop after every event of the simulation would take longer than all the rest.
 */
export const settlePromises: () => void = compileCheckpoint();

function compileCheckpoint(): () => void {
  setFlagsFromString('--allow-natives-syntax');
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  return new Function('%PerformMicrotaskCheckpoint()') as () => void;
}
