import { describe, expect, it, jest } from '@jest/globals';
import type { MasterStatus } from '../../lib/core/health/status.js';
import type { ShardStatus } from '../../lib/core/master.interface.js';
import type { RedisMasterSource } from '../../lib/redis/master-source.js';
import { type ClusterNode, startCluster, type TestCluster } from '../support/cluster.js';
import { resourceOn } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import { allVote, GUARDED, OPTIONS } from '../support/guarded.js';
import { startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';

jest.setTimeout(60_000);

/** Without replicas, a primary that is down stays the owner of its slots. */
const STEADY = { replicas: 0, nodeTimeout: 60_000 };

function sourceOf(cluster: TestCluster): RedisMasterSource {
  return { cluster: cluster.urls };
}

function statusOf(contender: Contender): MasterStatus {
  return contender.redlock.status().masters[0]!;
}

/** By the addresses of the primaries. */
function shardsOf(contender: Contender): ReadonlyMap<string, ShardStatus> {
  return new Map(statusOf(contender).shards?.map((shard) => [shard.address, shard]));
}

function statesOf(contender: Contender, cluster: TestCluster): (string | undefined)[] {
  const shards = shardsOf(contender);
  return cluster.nodes.map(({ port }) => shards.get(`127.0.0.1:${port}`)?.state);
}

describe('The status of a cluster', () => {
  it('names each primary, what keeps it from voting and how many partitions it serves', async () => {
    await using cluster = await startCluster(STEADY);
    await using contender = await Contender.on([sourceOf(cluster)], GUARDED);
    await eventually(() => statesOf(contender, cluster).every((state) => state === 'voting'));
    await allVote(contender);
    const shards = [...shardsOf(contender).values()];
    expect(shards.map(({ partitions }) => partitions).sort()).toEqual([85, 85, 86]);

    const [first] = cluster.nodes;
    const address = `127.0.0.1:${first!.port}`;
    await cluster.kill(first!);
    await eventually(() => statesOf(contender, cluster).join() === 'down,voting,voting');
    expect(shardsOf(contender).get(address)?.reason).toEqual(expect.any(String));
    expect(statusOf(contender).state).toBe('voting');

    await cluster.restart(first!);
    const isEmpty = 'it has no seal: it is new, or has lost its data';
    await eventually(() => shardsOf(contender).get(address)?.reason === isEmpty);
    expect(statesOf(contender, cluster)).toEqual(['quarantined', 'voting', 'voting']);
    expect(shardsOf(contender).get(address)!.remaining).toBeGreaterThan(0);
    expect(contender.redlock.status()).toMatchObject({ canVote: true, masters: [{ state: 'voting' }] });

    await eventually(() => statesOf(contender, cluster).every((state) => state === 'voting'));
    expect(shardsOf(contender).get(address)).toEqual({ address, state: 'voting', partitions: expect.any(Number) });
  });

  it('distinguishes a primary that refuses every write from the others, and reports the cluster once all refuse', async () => {
    await using cluster = await startCluster({ ...STEADY, args: ['--cluster-require-full-coverage', 'no'] });
    const events: string[] = [];
    await using contender = await Contender.on([sourceOf(cluster)], OPTIONS, {
      masterRefused: (_, reason) => events.push(`refused: ${reason}`),
      masterVotesAgain: () => events.push('votes again'),
    });
    const resources = await Promise.all(cluster.nodes.map(resourceOn));
    const attempt = async (resource: string): Promise<void> => {
      const lock = await contender.acquire(resource, 1_000, { wait: 0 }).catch((error: unknown) => String(error));
      if (typeof lock !== 'string') await lock.release();
    };
    const configure = (node: ClusterNode, least: string): Promise<unknown> =>
      node.command('CONFIG', 'SET', 'min-replicas-to-write', least);
    const [first, ...others] = cluster.nodes;

    await configure(first!, '1');
    for (const resource of [...resources, ...resources, ...resources]) await attempt(resource);
    expect(statesOf(contender, cluster)).toEqual(['refused', 'voting', 'voting']);
    expect(shardsOf(contender).get(`127.0.0.1:${first!.port}`)?.reason).toMatch(/^NOREPLICAS /);
    expect(contender.redlock.status()).toMatchObject({ canVote: true, masters: [{ state: 'voting' }] });
    expect(events).toEqual([]);

    for (const node of others) await configure(node, '1');
    for (const resource of [...resources, ...resources]) await attempt(resource);
    expect(contender.redlock.status()).toMatchObject({ canVote: false, masters: [{ state: 'refused' }] });
    expect(events).toEqual([expect.stringMatching(/^refused: NOREPLICAS /)]);

    for (const node of cluster.nodes) await configure(node, '0');
    for (const resource of resources) await attempt(resource);
    expect(statesOf(contender, cluster)).toEqual(['voting', 'voting', 'voting']);
    expect(events).toEqual([expect.any(String), 'votes again']);
  });

  it('calls a primary down that leaves requests unanswered', async () => {
    await using cluster = await startCluster(STEADY);
    await using contender = await Contender.on([sourceOf(cluster)], { ...OPTIONS, restartGuard: false });
    await eventually(() => statesOf(contender, cluster).every((state) => state === 'voting'));
    const [, second] = cluster.nodes;
    cluster.pause(second!);
    try {
      await eventually(() => statesOf(contender, cluster).join() === 'voting,down,voting', 30_000);
      const { reason } = shardsOf(contender).get(`127.0.0.1:${second!.port}`)!;
      expect(reason).toMatch(/it leaves requests unanswered|no answer for long/);
    } finally {
      cluster.resume(second!);
    }
    await eventually(() => statesOf(contender, cluster).every((state) => state === 'voting'));
  });

  it('has no shards for a single server', async () => {
    await using masters = await startMasters(1);
    await using contender = await Contender.on(masters.urls, { ...OPTIONS, restartGuard: false });
    expect(statusOf(contender)).toEqual({ master: expect.any(String), state: 'voting', version: expect.any(String) });
  });
});
