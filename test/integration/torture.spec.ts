import { describe, expect, it } from '@jest/globals';
import { compileForTorture, SEED, SHORT, violationsIn, WITHIN } from '../support/torture-runs.js';
import type { Evidence } from '../torture/evidence.js';
import { torture } from '../torture/run.js';
import { statisticsOf } from '../torture/statistics.js';

const files = compileForTorture();

describe('Five masters, four processes, and every kind of fault', () => {
  it(
    'cause no overlap, no late write, no hang, no late loss report, and no leftover',
    async () => {
      const evidence = await torture({ seed: SEED, milliseconds: SHORT, masters: 5, workers: 4, ...files() });
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
