import { eventually } from './eventually.js';
import type { Contender } from './redlocks.js';

/** In milliseconds. */
export const TTL = 3_000;
// Speed does not matter here. A machine that is busy with other tests must not cause lost votes.
export const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 500 };
export const GUARDED = { ...OPTIONS, restartGuard: true };
export const MARKER = 'lock:\0incarnation';

/** The states of the masters, as a process sees them. */
export function states(contender: Contender): string[] {
  return contender.redlock.status().masters.map(({ state }) => state);
}

/** Resolves when every master votes, a cluster with all of its partitions. */
export async function allVote(contender: Contender): Promise<void> {
  await eventually(() =>
    contender.redlock.status().masters.every((master) => [master, ...(master.shards ?? [])].every(votes)),
  );
}

function votes({ state }: { readonly state: string }): boolean {
  return state === 'voting';
}
