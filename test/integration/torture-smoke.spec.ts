import { expect, it } from '@jest/globals';
import { compileForTorture, SEED, violationsIn, WITHIN } from '../support/torture-runs.js';
import { torture } from '../torture/run.js';
import { statisticsOf } from '../torture/statistics.js';

const files = compileForTorture();

it(
  'Eight seconds of faults break no promise, while locks are granted and used',
  async () => {
    const evidence = await torture({ seed: SEED, milliseconds: 8_000, masters: 3, workers: 3, ...files() });
    expect(violationsIn(evidence)).toEqual({});
    expect(evidence.faults.length).toBeGreaterThan(0);
    const { sections, writesAccepted } = statisticsOf(evidence);
    expect(Math.min(sections, writesAccepted)).toBeGreaterThan(0);
  },
  WITHIN,
);
