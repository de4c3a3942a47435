import { describe, expect, it, jest } from '@jest/globals';
import type { MasterStatus } from '../../lib/core/health/status.js';
import type { ShardStatus } from '../../lib/core/master.interface.js';
import { type ClusterNode, startCluster, type TestCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, Traffic, TTL, UNGUARDED } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import { allVote, GUARDED, OPTIONS } from '../support/guarded.js';
import type { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

/** Without replicas, a primary that is down stays the owner of its slots. */
const STEADY = { replicas: 0, nodeTimeout: 60_000, args: ['--cluster-require-full-coverage', 'no'] };

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
    await using contender = await contenderOn(cluster, GUARDED);
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
    await using cluster = await startCluster(STEADY);
    const events: string[] = [];
    await using contender = await contenderOn(cluster, OPTIONS, {
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
});

describe('A primary that hangs', () => {
  it('does not keep the others from granting locks', async () => {
    await using cluster = await startCluster(STEADY);
    const [hung, other] = cluster.nodes as [ClusterNode, ClusterNode];
    const [far, near] = [await resourceOn(hung), await resourceOn(other)];
    const silent: string[] = [];
    const observer = { masterSilent: (name: string) => void silent.push(name) };
    await using contender = await contenderOn(cluster, UNGUARDED, observer);
    await allGranted(contender, [far, near]);
    cluster.pause(hung);
    try {
      await using waiting = new Traffic(contender, [far]);
      await eventually(() => {
        const { state, reason } = shardsOf(contender).get(`127.0.0.1:${hung.port}`)!;
        return state === 'down' && reason!.includes('it leaves requests unanswered');
      });
      for (let i = 0; i < 20; i++) {
        await (await contender.acquire(near, TTL, PATIENT)).release();
        // Longer than the others may be silent.
        await new Promise((resolve) => setTimeout(resolve, 2 * UNGUARDED.masterTimeout));
        if (i === 5) await waiting.end();
      }
      expect(silent).toEqual([]);
    } finally {
      cluster.resume(hung);
    }
    await allGranted(contender, [far, near]);
  });

  it('gets a new connection when its peer has disappeared without a word', async () => {
    await using cluster = await startCluster(STEADY);
    const [hung] = cluster.nodes as [ClusterNode];
    const resource = await resourceOn(hung);
    await using view = await cluster.viewpoint();
    await using contender = await contenderOn(view, UNGUARDED);
    await allGranted(contender, [resource]);
    view.proxy(hung).halfOpen();
    await allGranted(contender, [resource]);
    expect(shardsOf(contender).get(`127.0.0.1:${view.proxy(hung).port}`)).toMatchObject({ state: 'voting' });
  });
});
