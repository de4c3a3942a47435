import { describe, expect, it } from '@jest/globals';
import { compileForTorture, SEED, SHORT, WITHIN } from '../support/torture-runs.js';
import { check, type Verdict } from '../torture/checker.js';
import type { Evidence } from '../torture/evidence.js';
import { complaints } from '../torture/report.js';
import { type ShardedOptions, tortureCluster } from '../torture/sharded/run.js';
import type { ShardFault } from '../torture/sharded/kinds.js';
import type { PlannedFault } from '../torture/plan.js';
import { statisticsOf } from '../torture/statistics.js';

const files = compileForTorture();

function run(options: Partial<ShardedOptions> = {}): Promise<Evidence> {
  return tortureCluster({
    ...{ seed: SEED, milliseconds: SHORT, workers: 3 },
    ...files(),
    ...options,
  });
}

describe('A cluster of six servers, three processes, and faults of every kind', () => {
  it(
    'cause no overlap, no late write, no hang, no leftover, and no end of locking',
    async () => {
      const evidence = await run();
      const verdict = check(evidence);
      const violations = Object.values(verdict).flat();
      if (violations.length > 0) process.stdout.write(`seed ${SEED}${complaints(evidence, verdict).join('\n')}\n`);
      expect(countsOf(verdict)).toEqual(Object.fromEntries(Object.keys(verdict).map((name) => [name, 0])));

      const { sections, writesAccepted } = statisticsOf(evidence);
      expect(evidence.faults.length).toBeGreaterThan(5);
      expect(sections).toBeGreaterThan(10);
      expect(writesAccepted).toBeGreaterThan(10);
    },
    WITHIN,
  );
});

describe('The checker finds violations where a cluster is not guarded', () => {
  it(
    'overlaps, when primaries that lost their data may vote',
    async () => {
      // The locks of all shards are lost again and again, and granted to the next one that asks.
      const faults = Array.from({ length: 25 }, (_, i): PlannedFault<ShardFault> => {
        return { at: i * 240, kind: 'FLUSHALL', targets: [0, 1, 2], lasts: 0, size: 0 };
      });
      const plan = { phases: [{ name: 'faults', from: 0, to: 6_000 } as const], faults };
      const evidence = await run({ restartGuard: false, plan });
      expect(countsOf(check(evidence))['overlaps between believers']).toBeGreaterThan(0);
    },
    WITHIN,
  );
});

function countsOf(verdict: Verdict): Record<string, number> {
  return Object.fromEntries(Object.entries(verdict).map(([name, { length }]) => [name, length]));
}
