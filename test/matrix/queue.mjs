import { availableParallelism } from 'node:os';

/**
 * One more than there are processors, but at most four: one action usually waits for the network, the disk or a lock.
 */
const AT_ONCE = Math.min(4, availableParallelism() + 1);

/** Runs actions, a few at a time. Resolves with their results in order. */
export async function inParallel(actions) {
  const results = [];
  const queue = actions.entries();
  const worker = async () => {
    for (const [index, action] of queue) results[index] = await action();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
