import { overlaps } from './check-exclusion.js';
import { beliefsOf, type Evidence } from './evidence.js';

/** A run in numbers. */
export function statisticsOf(evidence: Evidence) {
  const { workers, writes } = evidence;
  const faults = Object.fromEntries(
    evidence.kinds.map((name) => [name, evidence.faults.filter(({ kind }) => kind === name).length]),
  );
  const operations: string[] = [];
  const losses: string[] = [];
  for (const { events } of workers) {
    const names = new Map<number, string>();
    for (const event of events) {
      if (event.kind === 'asked') names.set(event.id, event.op);
      if (event.kind === 'settled') operations.push(`${names.get(event.id)}: ${event.how}`);
      if (event.kind === 'lost') losses.push(event.why);
    }
  }
  const beliefs = beliefsOf(evidence);
  const writesAccepted = writes.filter(({ accepted }) => accepted).length;
  return {
    ...{ faults, writesAccepted, writesRefused: writes.length - writesAccepted },
    /** How often each operation had which outcome. */
    operations: tally(operations),
    /** Why holders lost their locks, and how often. */
    losses: tally(losses),
    sections: beliefs.length,
    sharedSections: beliefs.filter(({ mode }) => mode === 'shared').length,
    permitSections: beliefs.filter(({ permits }) => permits !== undefined).length,
    /** Overlaps while an assumption was broken, or while locks granted then lived on. */
    overlapsAllowed: overlaps(evidence).filter(({ forbidden }) => !forbidden).length,
  };
}

/** How often each name is in the list. */
export function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names.toSorted()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
