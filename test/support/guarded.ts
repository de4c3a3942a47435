import { eventually } from './eventually.js';
import type { Contender } from './redlocks.js';

/** In milliseconds. */
export const TTL = 3_000;
// Speed does not matter here. A machine that is busy with other tests must not cause lost votes.
export const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 500 };
export const GUARDED = { ...OPTIONS, restartGuard: true };
export const MARKER = 'lock:\0run';

/** The states of the masters, as a process sees them. */
export function states(contender: Contender): string[] {
  return contender.redlock.masters.status().masters.map(({ state }) => state);
}

/** Resolves when every master votes. */
export async function allVote(contender: Contender): Promise<void> {
  await eventually(() => states(contender).every((state) => state === 'voting'));
}
