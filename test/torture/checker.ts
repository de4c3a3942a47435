import { duplicateTokens, excessPermits, overlaps, staleWrites, unorderedTokens } from './check-exclusion.js';
import { beliefsOf, type Evidence, type Violation } from './evidence.js';

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

/**
 * How much longer than its budget an operation may take, in milliseconds: far more than a timer needs, and far less
 * than a hang.
 */
const OPERATION_SLACK = 500;
/** How much later than the end of the validity a loss may be reported, in milliseconds. */
const LOSS_SLACK = 50;

/** Operations that took too long, not counting the time during which their process did not run. */
function hungOperations({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events, killedAt }) => {
    const ends = new Map(events.flatMap((event) => (event.kind === 'settled' ? [[event.id, event] as const] : [])));
    return events.flatMap((event) => {
      if (event.kind !== 'asked') return [];
      const { op, id, at, within } = event;
      const end = ends.get(id);
      if (!end) return killedAt === undefined ? [{ at, message: `${op} of ${name} never settled` }] : [];
      const took = end.at - at - end.stalled;
      if (took <= within + OPERATION_SLACK) return [];
      const message = `${op} of ${name} took ${took.toFixed()} ms instead of ${within.toFixed()} until it was ${end.how}`;
      return [{ at, message }];
    });
  });
}

/** Ends of validity that were reported late to the holder, or not at all. */
function lateLosses({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ events }) =>
    events.flatMap((event) => {
      if ((event.kind !== 'lost' && event.kind !== 'left') || event.due === undefined) return [];
      const late = event.at - event.due - event.stalled;
      if (late <= LOSS_SLACK) return [];
      const how = event.kind === 'lost' ? 'was notified of its loss' : 'was not notified of its loss';
      return [{ at: event.at, message: `${event.section} ${how} ${late.toFixed()} ms after its validity had ended` }];
    }),
  );
}

/** Errors that no code caught. */
function unhandledErrors({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events }) =>
    events.flatMap((event) =>
      event.kind === 'unhandled' ? [{ at: event.at, message: `unhandled in ${name}: ${event.message}` }] : [],
    ),
  );
}

/** Processes that did not exit by themselves, with code 0, after their application was closed. */
function stuckProcesses({ workers }: Evidence): Violation[] {
  return workers.flatMap(({ name, events, exit, killedAt }) => {
    if (exit === 0 || killedAt !== undefined) return [];
    const closed = events.some(({ kind }) => kind === 'closed') ? 'closed' : 'not closed';
    return [{ at: events.at(-1)?.at ?? 0, message: `${name}, ${closed}, ended with ${exit}` }];
  });
}
