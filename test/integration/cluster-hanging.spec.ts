import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type ClusterNode, startCluster, type TestCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, Traffic, TTL, UNGUARDED } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import type { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

let cluster: TestCluster;
let hung: ClusterNode;
let resources: readonly [string, string];

beforeAll(async () => {
  // No election while a primary hangs.
  const args = ['--cluster-require-full-coverage', 'no'];
  cluster = await startCluster({ replicas: 0, nodeTimeout: 60_000, args });
  const [first, second] = cluster.nodes as [ClusterNode, ClusterNode];
  hung = first;
  resources = [await resourceOn(first), await resourceOn(second)];
});
afterAll(() => cluster[Symbol.asyncDispose]());

function shardOf(contender: Contender, port: number): unknown {
  const [master] = contender.redlock.status().masters;
  return master?.shards?.find(({ address }) => address === `127.0.0.1:${port}`);
}

describe('A primary that hangs', () => {
  it('does not keep the others from granting locks', async () => {
    const silent: string[] = [];
    const observer = { masterSilent: (name: string) => void silent.push(name) };
    await using contender = await contenderOn(cluster, UNGUARDED, observer);
    const [far, near] = resources;
    await allGranted(contender, resources);
    cluster.pause(hung);
    try {
      await using waiting = new Traffic(contender, [far]);
      await eventually(() => {
        const shard = shardOf(contender, hung.port);
        return JSON.stringify(shard).includes('it leaves requests unanswered');
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
    await allGranted(contender, resources);
  });

  it('gets a new connection when its peer has disappeared without a word', async () => {
    await using view = await cluster.viewpoint();
    await using contender = await contenderOn(view, UNGUARDED);
    await allGranted(contender, resources);
    view.proxy(hung).halfOpen();
    await allGranted(contender, resources);
    expect(shardOf(contender, view.proxy(hung).port)).toMatchObject({ state: 'voting' });
  });
});
