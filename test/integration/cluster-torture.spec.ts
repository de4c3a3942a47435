import { describe, expect, it } from '@jest/globals';
import { compileForTorture, SEED, SHORT, violationsIn, WITHIN } from '../support/torture-runs.js';
import type { Evidence } from '../torture/evidence.js';
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
      expect(violationsIn(evidence)).toEqual({});

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
      expect(violationsIn(evidence, { expected: true })).toHaveProperty(['overlaps between believers']);
    },
    WITHIN,
  );
});
