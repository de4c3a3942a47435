import type { MasterStatus, RedlockStatus } from '../core/health/status.js';

/** Whether locks can be taken now, in words. */
export interface Availability {
  /** How many masters vote, how many must, and what keeps the others from it. */
  readonly reason: string;
  /** Milliseconds until locks can be taken again at the latest; absent while they can, and if no time is known. */
  readonly opensIn?: number;
}

const STATES: Readonly<Record<MasterStatus['state'], string>> = {
  voting: 'votes',
  quarantined: 'is quarantined',
  silent: 'is silent',
  down: 'is down',
  refused: 'is refused',
};

/** Describes whether locks can be taken and, if not, why not and until when at the latest. */
export function availabilityOf({ masters, quorum, canVote }: RedlockStatus): Availability {
  const others = masters.filter(({ state }) => state !== 'voting');
  const voting = masters.length - others.length;
  const votes = `${voting} of ${masters.length} ${masters.length === 1 ? 'master votes' : 'masters vote'}`;
  if (others.length === 0) return { reason: `${votes}.` };
  const problems = others.map(
    ({ master, state, reason }) => `${master} ${STATES[state]}${reason ? `: ${reason}` : ''}`,
  );
  if (canVote) {
    const margin = voting === quorum ? ' No other master may fail.' : '';
    return { reason: `${votes}.${margin} ${problems.join('. ')}.` };
  }
  const missing = quorum - voting;
  const ends = others.flatMap(({ remaining }) => remaining ?? []).sort((a, b) => a - b);
  const opensIn = ends[missing - 1];
  return {
    reason: `${votes}, ${quorum} ${quorum === 1 ? 'is' : 'are'} needed. ${problems.join('. ')}.`,
    ...(opensIn !== undefined && { opensIn }),
  };
}
