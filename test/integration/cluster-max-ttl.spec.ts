import { describe, expect, it, jest } from '@jest/globals';
import { type ClusterNode, startCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, sealOf, SETTINGS, TTL } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';

// A new cluster does not vote for some seconds.
jest.setTimeout(60_000);

const HOUR = 3_600_000;

describe('A cluster', () => {
  // Protocol 12.6
  it('keeps a lost partition from voting for the longest ttl of all processes, also if another one seals it', async () => {
    await using cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
    const [node] = cluster.nodes as [ClusterNode];
    const resource = await resourceOn(node);
    const nonce = async (): Promise<unknown> => node.command('HGET', sealOf(resource), 'nonce');
    await using short = await contenderOn(cluster);
    await allGranted(short, [resource]);
    // The other process does not read the seals again.
    await using long = await contenderOn(cluster, { ...SETTINGS, maxTtl: HOUR });
    await using held = await long.acquire(resource, HOUR, PATIENT);
    const before = await nonce();
    await cluster.flush(node);
    await expect(short.acquire(resource, TTL, { wait: 0 })).rejects.toThrow('does not vote');
    await eventually(async () => ((await nonce()) ?? before) !== before);
    const [at, from] = (await node.command('HMGET', sealOf(resource), 'at', 'from')) as [string, string];
    expect(held.isHeld).toBe(true);
    expect(Number(from) - Number(at)).toBeGreaterThan(HOUR);
  });
});
