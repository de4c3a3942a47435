import { withClient } from './command.js';

/** The hash of fencing counters: the only key that outlives the locks. The number of its fields is bounded. */
export const COUNTERS = /\0fences$/;

/** Keys on a server, without the key that outlives the locks. */
export async function leftovers(port: number): Promise<string[]> {
  return (await withClient(port, (client) => client.keys('*'))).filter((key) => !COUNTERS.test(key));
}

/** Number of these keys on several servers. */
export async function leftoversOn(ports: readonly number[]): Promise<number> {
  return (await Promise.all(ports.map(leftovers))).flat().length;
}
