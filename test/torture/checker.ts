import { duplicateTokens, excessPermits, overlaps, staleWrites, unorderedTokens } from './check-exclusion.js';
import { hungOperations, lateLosses, stuckProcesses, unhandledErrors } from './check-promptness.js';
import type { Evidence, Violation } from './evidence.js';
import { beliefsOf } from './sections.js';

const CHECKS = {
  'overlaps between believers': (evidence: Evidence) => overlaps(evidence).filter(({ forbidden }) => forbidden),
  'permits beyond their number': excessPermits,
  'stale writes accepted': staleWrites,
  'duplicate fencing tokens': duplicateTokens,
  'unordered fencing tokens': unorderedTokens,
  'ghost keys': ghostKeys,
  'hung operations': hungOperations,
  'late loss reports': lateLosses,
  'unhandled errors': unhandledErrors,
  'processes that did not end': stuckProcesses,
  'keys not obtained in the calm': unobtainedKeys,
} as const satisfies Record<string, (evidence: Evidence) => readonly Violation[]>;

export type Check = keyof typeof CHECKS;

export type Verdict = Readonly<Record<Check, readonly Violation[]>>;

const NAMES = Object.keys(CHECKS) as Check[];

/** Everything that must not have happened. All lists are empty if all is well. */
export function check(evidence: Evidence): Verdict {
  return Object.fromEntries(NAMES.map((name) => [name, CHECKS[name](evidence)])) as unknown as Verdict;
}

/** Keys that still existed when every lock had to have ended. */
function ghostKeys({ ghosts, phases }: Evidence): Violation[] {
  return ghosts.map(({ master, key, ttl }) => {
    const lives = ttl < 0 ? 'for ever' : `for ${ttl} ms more`;
    return { at: phases.at(-1)?.to ?? 0, message: `${JSON.stringify(key)} lives ${lives} on master ${master}` };
  });
}

/** After all faults are healed, exclusive locks on every key, and all permits, are obtained again. */
function unobtainedKeys({ keys, phases, workers }: Evidence): Violation[] {
  const calm = phases.filter(({ name }) => name === 'calm');
  const beliefs = beliefsOf({ workers }).filter(({ mode }) => mode === 'exclusive');
  return calm.flatMap(({ from, to }) => {
    const obtained = beliefs.filter((belief) => from <= belief.from && belief.from < to);
    const missing = keys.filter((key) => !obtained.some((belief) => belief.keys.includes(key)));
    return missing.map((key) => ({ at: to, message: `no worker obtained ${key} although every fault was healed` }));
  });
}
