import { type Verdict } from './checker.js';
import { assumptionsHold, type Evidence, type Phase, type Violation } from './evidence.js';
import { BROKEN } from './kinds.js';
import { statisticsOf } from './statistics.js';

/** How many violations of each kind are shown, and how much of the surrounding events. */
const SHOWN = 3;
const BEFORE = 1_500;
const AFTER = 300;
const MOST_LINES = 60;
const ASTERISK = '* breaks an assumption: a lock over these servers cannot survive it';

/** The assumptions of a phase. */
export function assumptionsOf(phase: Pick<Phase, 'name'> & Partial<Phase>): string {
  if (phase.name === 'assumptions broken') {
    return 'a majority forgets unnoticed: no exclusion, but ordered tokens, no late write, no hang, no ghost';
  }
  if (phase.name === 'settling') return 'locks from the broken phase may live on: the same';
  return 'masters that forget are noticed and kept out: exclusion, and everything else';
}

/** Lines of a table: faults, operations and counts. */
export function summary(evidence: Evidence, verdict: Verdict): string[] {
  const { faults, operations, losses, sections, ...rest } = statisticsOf(evidence);
  const broken = evidence.phases.filter((phase) => !assumptionsHold(phase));
  const time = (phases: readonly Phase[]): string =>
    `${(phases.reduce((sum, { from, to }) => sum + to - from, 0) / 1_000).toFixed(1)} s`;
  return [
    ...heading('faults', 'times'),
    ...Object.entries(faults).map(([kind, count]) => row(kind in BROKEN ? `${kind} *` : kind, count)),
    row('all', evidence.faults.length),
    ...(evidence.kinds.some((kind) => kind in BROKEN) ? [ASTERISK] : []),
    ...heading('operations', 'times'),
    ...[...operations].map(([name, count]) => row(name, count)),
    row('sections under a lock', sections),
    row('of these, under a shared lock', rest.sharedSections),
    row('of these, with a permit', rest.permitSections),
    ...[...losses].map(([cause, count]) => row(`lost: ${cause}`, count)),
    row('writes accepted', rest.writesAccepted),
    row('late writes refused', rest.writesRefused),
    ...heading('while', 'time'),
    row('all assumptions hold', time(evidence.phases.filter(assumptionsHold))),
    row('one is broken, or was just before', time(broken)),
    row('overlaps then, which no lock can prevent', rest.overlapsAllowed),
    ...heading('must be zero', 'count'),
    ...Object.entries(verdict).map(([name, violations]) => row(name, violations.length)),
  ];
}

/** The violations, with the events around them. */
export function complaints(evidence: Evidence, verdict: Verdict): string[] {
  return Object.entries(verdict).flatMap(([name, violations]) =>
    violations
      .slice(0, SHOWN)
      .flatMap((violation) => [`\nVIOLATED: ${name}: ${violation.message}`, ...around(evidence, violation)]),
  );
}

function around({ workers, writes, faults, phases }: Evidence, { at, message }: Violation): string[] {
  const start = phases[0]?.from ?? 0;
  const isNear = (time: number): boolean => at - BEFORE <= time && time <= at + AFTER;
  const isAbout = (section: string): boolean => message.includes(section);
  const lines = [
    ...phases
      .filter(({ from, to }) => from <= at && at < to)
      .map(({ name, from }) => ({ at: from, text: `== ${name}` })),
    ...faults
      .filter((fault) => fault.at <= at + AFTER && fault.until >= at - BEFORE)
      .map(({ at: time, until, kind, targets }) => ({
        at: time,
        text: `fault: ${kind}, ${targets.join(', ')}, for ${(until - time).toFixed()} ms`,
      })),
    ...workers.flatMap(({ name, events }) =>
      events
        .filter((event) => isNear(event.at) && (!('section' in event) || isAbout(event.section)))
        .filter(({ kind }) => kind !== 'asked' && kind !== 'settled')
        .map((event) => ({ at: event.at, text: `worker ${name}: ${textOf(event)}` })),
    ),
    ...writes
      .filter((write) => isNear(write.at) && isAbout(write.section))
      .map(({ at: time, ...write }) => ({ at: time, text: `write: ${JSON.stringify(write)}` })),
  ];
  return lines
    .toSorted((a, b) => a.at - b.at)
    .slice(-MOST_LINES)
    .map(({ at: time, text }) => `  ${((time - start) / 1_000).toFixed(4).padStart(9)} s  ${text}`);
}

function textOf({ at: _, ...event }: { readonly at: number; readonly kind: string }): string {
  return JSON.stringify(event);
}

function heading(name: string, value: string): string[] {
  return ['', row(name, value), '-'.repeat(60)];
}

function row(name: string, value: number | string): string {
  return `${name.padEnd(48)}${String(value).padStart(12)}`;
}
