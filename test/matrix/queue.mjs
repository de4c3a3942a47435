import { availableParallelism } from 'node:os';

/** As many as there are processors, but a few at least wait for the network and the disk. */
const AT_ONCE = Math.min(4, Math.max(2, availableParallelism()));

/** Runs actions, a few at a time; resolves with their results in order. */
export async function inParallel(actions) {
  const results = [];
  const queue = actions.entries();
  const worker = async () => {
    for (const [index, action] of queue) results[index] = await action();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
