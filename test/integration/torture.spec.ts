import { describe, expect, it } from '@jest/globals';
import { compileForTorture, SEED, SHORT, violationsIn, WITHIN } from '../support/torture-runs.js';
import type { Evidence } from '../torture/evidence.js';
import type { FaultKind } from '../torture/kinds.js';
import type { Plan, PlannedFault } from '../torture/plan.js';
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
      expect(violationsIn(evidence)).toEqual({});

      const { faults, operations, sections, sharedSections, writesAccepted } = statisticsOf(evidence);
      const missing = Object.entries(faults).filter(([, times]) => times === 0);
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
});

describe('The checker finds violations where the system is broken', () => {
  it(
    'overlaps, when masters that lost their data may vote',
    async () => {
      // Three of five masters repeatedly forget their locks, and then grant them to the next acquisition.
      const flushes = Array.from({ length: 25 }, (_, i) => fault(i * 240, 'FLUSHALL', [0, 1, 2]));
      const evidence = await run({ restartGuard: false, plan: planWith(flushes, 6_000) });
      expect(violationsIn(evidence, { expected: true })).toHaveProperty(['overlaps between believers']);
    },
    WITHIN,
  );

  it(
    'late writes, when the resource ignores fencing tokens and a holder is stopped before its write',
    async () => {
      const stops = Array.from({ length: 6 }, (_, i) => fault(i * 900, 'holder stopped before its write', [0], 1_500));
      const evidence = await run({ fenced: false, plan: planWith(stops, 8_000) });
      const violations = violationsIn(evidence, { expected: true });
      expect(violations).toHaveProperty(['stale writes accepted']);
      // The locks themselves were correct.
      expect(violations).not.toHaveProperty(['overlaps between believers']);
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
