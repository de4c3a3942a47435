import { describe, expect, it } from '@jest/globals';
import { fc } from '../../support/properties.js';
import { SHARD_KINDS } from '../../torture/sharded/kinds.js';
import { shardPlanOf } from '../../torture/sharded/plan.js';

const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const options = { milliseconds: 60_000, workers: 4 };

describe('A torture plan for a cluster', () => {
  it('is the same for the same seed', () => {
    expect(shardPlanOf({ ...options, seed: 1 })).toEqual(shardPlanOf({ ...options, seed: 1 }));
    expect(shardPlanOf({ ...options, seed: 1 })).not.toEqual(shardPlanOf({ ...options, seed: 2 }));
  });

  it('gives a target one fault at a time, and heals each before the calm', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { phases, faults } = shardPlanOf({ ...options, seed });
        const [from = NaN] = phases.filter(({ name }) => name === 'calm').map((calm) => calm.from);
        for (const [index, { at, lasts, kind, targets }] of faults.entries()) {
          expect(at + lasts).toBeLessThanOrEqual(from);
          const rivals = faults
            .slice(0, index)
            .filter((other) => SHARD_KINDS[other.kind].target === SHARD_KINDS[kind].target)
            .filter((other) => other.at + other.lasts > at && other.targets.some((target) => targets.includes(target)));
          expect(rivals).toEqual([]);
        }
      }),
    );
  });

  it('hits several shards at the same time', () => {
    const { faults } = shardPlanOf({ ...options, seed: 1 });
    const overlapping = faults.filter(({ at, kind }, index) =>
      faults.slice(0, index).some((other) => other.kind !== kind && other.at + other.lasts > at),
    );
    expect(overlapping.length).toBeGreaterThan(0);
  });
});
