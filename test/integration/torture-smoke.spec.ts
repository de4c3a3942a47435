import { expect, it } from '@jest/globals';
import { compileForTorture, SEED, WITHIN } from '../support/torture-runs.js';
import { check } from '../torture/checker.js';
import { complaints } from '../torture/report.js';
import { torture } from '../torture/run.js';
import { statisticsOf } from '../torture/statistics.js';

const files = compileForTorture();

it(
  'Eight seconds of faults break no promise, while locks are granted and used',
  async () => {
    const evidence = await torture({ seed: SEED, milliseconds: 8_000, masters: 3, workers: 3, ...files() });
    const verdict = check(evidence);
    const violations = Object.values(verdict).flat();
    expect(violations.length > 0 ? complaints(evidence, verdict) : []).toEqual([]);
    expect(evidence.faults.length).toBeGreaterThan(0);
    const { sections, writesAccepted } = statisticsOf(evidence);
    expect(Math.min(sections, writesAccepted)).toBeGreaterThan(0);
  },
  WITHIN,
);
