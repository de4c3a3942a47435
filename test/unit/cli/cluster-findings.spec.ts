import { describe, expect, it } from '@jest/globals';
import type { ClusterExamination, ShardFacts } from '../../../lib/cli/cluster-examination.js';
import { onCluster, onShard } from '../../../lib/cli/cluster-findings.js';
import { type Examination, nothingKnown } from '../../../lib/cli/examination.js';

function shard(of: Partial<ShardFacts> = {}): Examination {
  const facts = { partitions: 85, replicas: 1, state: 'ok', nodeTimeout: 15_000, standing: undefined, ...of };
  return { ...nothingKnown('10.0.0.1:6379'), shard: facts };
}

function cluster(of: Partial<ClusterExamination> = {}): ClusterExamination {
  const shards = [shard(), shard(), shard()];
  return { ids: [], shards, unserved: 0, unreachable: [], nodeTimeout: undefined, ...of };
}

describe('The findings about a cluster', () => {
  it('are none for three primaries with replicas', () => {
    expect(onCluster(cluster())).toEqual([]);
    expect(onShard(shard(), cluster())).toEqual([]);
  });

  it.each<[Partial<ClusterExamination>, string, string]>([
    [{ unserved: 64 }, 'problem', '64 of 16384 slots have no primary'],
    [{ shards: [shard()] }, 'note', 'it has 1 primary, too few'],
    [
      { shards: [shard(), shard(), shard({ nodeTimeout: 5_000 })] },
      'problem',
      'different values of cluster-node-timeout: 5000 and 15000',
    ],
    [
      { unreachable: [{ address: '10.0.0.4:6379', failure: { code: 'UNREACHABLE', reason: 'ETIMEDOUT' } }] },
      'problem',
      'its replica 10.0.0.4:6379 cannot be reached: ETIMEDOUT',
    ],
  ])('name what is wrong with the whole: %j', (of, level, what) => {
    expect(onCluster(cluster(of))).toEqual([expect.objectContaining({ level, what: expect.stringContaining(what) })]);
  });

  it.each<[Partial<ShardFacts>, Partial<ClusterExamination>, string, string]>([
    [{ state: 'fail' }, {}, 'problem', 'it reports cluster_state:fail'],
    [{ replicas: 0 }, {}, 'note', 'the locks of its 85 partitions fail'],
    [{}, { nodeTimeout: 5_000 }, 'problem', 'clusterNodeTimeout only 5.0 s'],
  ])('name what is wrong with a primary: %j %j', (facts, of, level, what) => {
    const findings = onShard(shard(facts), cluster(of));
    expect(findings).toEqual([expect.objectContaining({ level, what: expect.stringContaining(what) })]);
  });
});
