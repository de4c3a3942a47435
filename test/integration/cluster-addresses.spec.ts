import { describe, expect, it, jest } from '@jest/globals';
import { startCluster } from '../support/cluster.js';
import {
  allGranted,
  contenderOn,
  PATIENT,
  resourceOn,
  SETTINGS,
  slotOf,
  TTL,
  UNGUARDED,
} from '../support/cluster-locks.js';
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

const RUN = /run_id:([0-9a-f]{40})/g;
let runs = 0;

/** What a proxy may do to the answers of a server. The texts keep their lengths, which RESP states. */
const PROXIES = [
  {
    does: 'hides',
    rewrite: (text: string): string => text.replaceAll('run_id:', 'no_one:'),
    reason: 'it does not report which process it is',
  },
  {
    does: 'fakes',
    rewrite: (text: string): string => text.replaceAll(RUN, () => `run_id:${String(++runs).padStart(40, '0')}`),
    reason: 'it reports another process with each answer',
  },
];

it.each(PROXIES)(
  'A proxy that $does the run of a server is refused with the guard on, and serves locks without it',
  async ({ rewrite, reason }) => {
    await using cluster = await startCluster({ primaries: 1, replicas: 0 });
    const [node] = cluster.nodes;
    await using view = await cluster.viewpoint();
    view.proxy(node!).replies.rewrite = (chunk) => Buffer.from(rewrite(chunk.toString('latin1')), 'latin1');
    await expect(contenderOn(view, SETTINGS)).rejects.toThrow(reason);
    await using contender = await contenderOn(view, UNGUARDED);
    await allGranted(contender, [await resourceOn(node!)]);
  },
);
