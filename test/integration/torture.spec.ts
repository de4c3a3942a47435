import { describe, expect, it } from '@jest/globals';
import { compileForTorture, SEED, SHORT, WITHIN } from '../support/torture-runs.js';
import { overlaps } from '../torture/check-exclusion.js';
import { check, type Verdict } from '../torture/checker.js';
import type { Evidence } from '../torture/evidence.js';
import { type FaultKind, KINDS } from '../torture/kinds.js';
import type { Plan, PlannedFault } from '../torture/plan.js';
import { complaints } from '../torture/report.js';
import { torture, type TortureOptions } from '../torture/run.js';
import { statisticsOf } from '../torture/statistics.js';

const files = compileForTorture();

function run(options: Partial<TortureOptions> = {}): Promise<Evidence> {
  return torture({
    ...{ seed: SEED, milliseconds: SHORT, masters: 5, workers: 4 },
    ...files(),
    ...options,
  });
}

describe('Five masters, four processes, and every kind of fault', () => {
  it(
    'cause no overlap, no late write, no hang, no late loss report, and no leftover',
    async () => {
      const evidence = await run();
      const verdict = check(evidence);
      const violations = Object.values(verdict).flat();
      if (violations.length > 0) process.stdout.write(`seed ${SEED}${complaints(evidence, verdict).join('\n')}\n`);
      expect(countsOf(verdict)).toEqual(Object.fromEntries(Object.keys(verdict).map((name) => [name, 0])));

      const { faults, operations, sections, sharedSections, writesAccepted } = statisticsOf(evidence);
      // Setting a server's clock requires Linux and a C compiler.
      const hasClocks = Object.entries(faults).some(([kind, times]) => isAboutClocks(kind) && times > 0);
      const missing = Object.entries(faults).filter(
        ([kind, times]) => times === 0 && (hasClocks || !isAboutClocks(kind)),
      );
      expect(missing).toEqual([]);
      // Most of the time, a majority can vote, so a part of the requested locks must be granted and used for writes.
      const asked = [...operations].filter(([name]) => name.startsWith('acquire')).map(([, times]) => times);
      const all = asked.reduce((sum, times) => sum + times, 0);
      expect(sections / all).toBeGreaterThan(0.1);
      expect(writesAccepted / sections).toBeGreaterThan(0.5);
      for (const key of evidence.keys) expect(sectionsOn(evidence, key)).toBeGreaterThan(0);
      expect(sharedSections).toBeGreaterThan(0);
    },
    WITHIN,
  );

  function sectionsOn({ workers }: Evidence, key: string): number {
    return workers
      .flatMap(({ events }) => events)
      .filter((event) => event.kind === 'granted' && event.keys.includes(key)).length;
  }

  function isAboutClocks(kind: string): boolean {
    return KINDS[kind as FaultKind].needsClock === true;
  }
});

describe('The checker finds violations where the system is broken', () => {
  it(
    'overlaps, when masters that lost their data may vote',
    async () => {
      // Three of five masters repeatedly forget their locks, and then grant them to the next acquisition.
      const flushes = Array.from({ length: 25 }, (_, i) => fault(i * 240, 'FLUSHALL', [0, 1, 2]));
      const evidence = await run({ restartGuard: false, plan: planWith(flushes, 6_000) });
      expect(overlaps(evidence).filter(({ forbidden }) => forbidden).length).toBeGreaterThan(0);
      expect(countsOf(check(evidence))['overlaps between believers']).toBeGreaterThan(0);
    },
    WITHIN,
  );

  it(
    'late writes, when the resource ignores fencing tokens and a holder is stopped before its write',
    async () => {
      const stops = Array.from({ length: 6 }, (_, i) => fault(i * 900, 'holder stopped before its write', [0], 1_500));
      const evidence = await run({ fenced: false, plan: planWith(stops, 8_000) });
      expect(countsOf(check(evidence))['stale writes accepted']).toBeGreaterThan(0);
      // The locks themselves were correct.
      expect(countsOf(check(evidence))['overlaps between believers']).toBe(0);
    },
    WITHIN,
  );

  function fault(at: number, kind: FaultKind, targets: readonly number[], lasts = 0): PlannedFault {
    return { at, kind, targets, lasts, size: 0 };
  }

  function planWith(faults: readonly PlannedFault[], milliseconds: number): Plan {
    return { phases: [{ name: 'faults', from: 0, to: milliseconds }], faults };
  }
});

function countsOf(verdict: Verdict): Record<string, number> {
  return Object.fromEntries(Object.entries(verdict).map(([name, { length }]) => [name, length]));
}
