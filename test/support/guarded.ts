import { eventually } from './eventually.js';
import type { Contender } from './redlocks.js';

export const MARKER = 'lock:\0run';

/** The states of the masters, as a process sees them. */
export function states(contender: Contender): string[] {
  return contender.redlock.masters.status().masters.map(({ state }) => state);
}

/** Resolves when every master votes. */
export async function allVote(contender: Contender): Promise<void> {
  await eventually(() => states(contender).every((state) => state === 'voting'));
}
