import { describe, expect, it, jest } from '@jest/globals';
import { startCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, slotOf, TTL } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import type { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

const addresses = (contender: Contender): string[] =>
  contender.redlock
    .status()
    .masters.flatMap(({ shards = [] }) => shards.map(({ address }) => address))
    .sort();

describe('The primaries of a cluster', () => {
  it('are followed when one joins, takes a partition and leaves again, also by a client that knows one node', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const [first] = cluster.nodes;
    await using contender = await contenderOn({ urls: [first!.url] });
    const resource = await resourceOn(first!);
    await allGranted(contender, [resource]);

    const joined = await cluster.join();
    await cluster.moveSlot(slotOf(resource), joined);
    const lock = await contender.acquire(resource, TTL, PATIENT);
    expect(addresses(contender)).toContain(`127.0.0.1:${joined.port}`);
    await lock.release();

    await cluster.moveSlot(slotOf(resource), first!);
    await cluster.remove(joined);
    await allGranted(contender, [resource]);
    await eventually(() => !addresses(contender).includes(`127.0.0.1:${joined.port}`), 30_000);
  });

  it('are reached by the addresses of `natMap` in place of those that they announce', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    await using view = await cluster.viewpoint();
    await using contender = await contenderOn(view);
    const proxied = cluster.nodes.map((node) => `127.0.0.1:${view.proxy(node).port}`);
    expect(addresses(contender)).toEqual(proxied.sort());
    const resources = await Promise.all(cluster.nodes.map((node) => resourceOn(node)));
    await allGranted(contender, resources);
  });
});
