import { describe, expect, it, jest } from '@jest/globals';
import { Cluster } from 'ioredis';
import { line, owns, startCluster, type ClusterNode } from '../support/cluster.js';
import { eventually } from '../support/eventually.js';

// An election takes two node timeouts, on a busy machine more.
jest.setTimeout(120_000);

const SLOT = 866;
/** In SLOT, and in a slot of another primary. */
const KEY = '{hello}';
const FAR_KEY = 'foo';

const set = (node: ClusterNode, key = KEY): Promise<unknown> => node.command('SET', key, 'value');
const size = async (node: ClusterNode): Promise<number> => Number(await node.command('DBSIZE'));

describe('startCluster', () => {
  it('forms a cluster whose nodes agree', async () => {
    await using cluster = await startCluster();
    const views = await Promise.all(cluster.nodes.map((node) => node.lines()));
    expect(views.map((lines) => lines.filter(({ isPrimary }) => isPrimary).length)).toEqual([3, 3, 3, 3, 3, 3]);
    for (const slot of [0, 5461, 16_383]) {
      const primary = await cluster.primaryOf(slot);
      const replica = await cluster.replicaOf(primary);
      expect([await primary.field('role'), await replica.field('role')]).toEqual(['master', 'slave']);
    }
  });

  it('forms a cluster of one primary without replicas', async () => {
    await using cluster = await startCluster({ primaries: 1, replicas: 0 });
    expect(cluster.urls).toHaveLength(1);
    expect(await cluster.primaryOf(SLOT)).toBe(cluster.nodes[0]);
  });

  it('leaves no process when a server cannot start', async () => {
    await expect(startCluster({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
  });
});

describe('TestCluster', () => {
  it('kills a primary, whose replica takes over, and starts it again as a replica', async () => {
    await using cluster = await startCluster();
    const primary = await cluster.primaryOf(SLOT);
    const replica = await cluster.replicaOf(primary);
    await set(primary);
    expect(await primary.command('WAIT', 1, 10_000)).toBe(1);

    await cluster.kill(primary);
    await cluster.waitUntil((lines) => owns(line(lines, replica), SLOT));
    expect(await cluster.primaryOf(SLOT)).toBe(replica);
    await cluster.restart(primary);
    await cluster.waitUntil((lines) => line(lines, primary).primary === replica.id);
    await cluster.settled();
    expect(await size(primary)).toBe(1);
  });

  it('restarts a primary with or without its data, under the same id and with its slots', async () => {
    await using cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
    const primary = await cluster.primaryOf(SLOT);
    await set(primary);
    await cluster.restart(primary, { empty: false });
    expect([await primary.command('CLUSTER', 'MYID'), await size(primary)]).toEqual([primary.id, 1]);
    await cluster.restart(primary);
    expect([await primary.command('CLUSTER', 'MYID'), await size(primary)]).toEqual([primary.id, 0]);
    await cluster.settled();
    expect(await cluster.primaryOf(SLOT)).toBe(primary);
  });

  it('flushes one node', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const [primary, other] = [await cluster.primaryOf(SLOT), await cluster.primaryOf(16_383)];
    await set(primary);
    await set(other, FAR_KEY);
    await cluster.flush(primary);
    expect([await size(primary), await size(other)]).toEqual([0, 1]);
  });

  it('pauses a primary, and resumes it after its replica has taken over', async () => {
    await using cluster = await startCluster();
    const primary = await cluster.primaryOf(SLOT);
    const replica = await cluster.replicaOf(primary);
    cluster.pause(primary);
    const queued = set(primary);
    await cluster.waitUntil((lines) => owns(line(lines, replica), SLOT));
    cluster.resume(primary);
    // What queued is executed, or refused with MOVED: both are seen.
    await queued.catch((error: unknown) => expect(String(error)).toMatch(/MOVED|CLUSTERDOWN/));
    await cluster.waitUntil((lines) => line(lines, primary).primary === replica.id);
  });

  it.each(['graceful', 'force', 'takeover'] as const)('promotes a replica by a %s failover', async (mode) => {
    await using cluster = await startCluster();
    const primary = await cluster.primaryOf(SLOT);
    const replica = await cluster.replicaOf(primary);
    await cluster.failover(replica, mode);
    expect(await cluster.primaryOf(SLOT)).toBe(replica);
    await cluster.waitUntil((lines) => line(lines, primary).primary === replica.id);
  });

  it('moves a slot with its keys', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const [from, to] = [await cluster.primaryOf(SLOT), await cluster.primaryOf(16_383)];
    await set(from, KEY);
    await set(from, `${KEY}\0second`);
    await cluster.moveSlot(SLOT, to);
    expect(await cluster.primaryOf(SLOT)).toBe(to);
    expect(await to.command('CLUSTER', 'COUNTKEYSINSLOT', SLOT)).toBe(2);
  });

  it('moves a slot step by step, and its keys in a chosen order', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const [from, to] = [await cluster.primaryOf(SLOT), await cluster.primaryOf(16_383)];
    const second = `${KEY}second`;
    await set(from, KEY);
    await set(from, second);
    await cluster.moveSlot(SLOT, to, { steps: ['importing', 'migrating'] });
    expect(line(await from.lines(), from).migrating.get(SLOT)).toBe(to.id);
    expect(line(await to.lines(), to).importing.get(SLOT)).toBe(from.id);
    await cluster.moveSlot(SLOT, to, { steps: ['keys'], keys: [second] });
    await expect(from.command('GET', second)).rejects.toThrow('ASK');
    await expect(from.command('MGET', KEY, second)).rejects.toThrow('TRYAGAIN');
    expect(await from.command('GET', KEY)).toBe('value');
    await cluster.moveSlot(SLOT, to, { steps: ['keys', 'node'] });
    expect(await to.command('MGET', KEY, second)).toEqual(['value', 'value']);
  });

  it('aborts the move of a slot', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const [from, to] = [await cluster.primaryOf(SLOT), await cluster.primaryOf(16_383)];
    await cluster.moveSlot(SLOT, to, { steps: ['importing', 'migrating', 'stable'] });
    expect([...line(await from.lines(), from).migrating, ...line(await to.lines(), to).importing]).toEqual([]);
    expect(await cluster.primaryOf(SLOT)).toBe(from);
  });

  it('cuts a primary off from the majority, which promotes its replica', async () => {
    await using cluster = await startCluster({ partitions: true });
    const primary = await cluster.primaryOf(SLOT);
    const replica = await cluster.replicaOf(primary);
    const rest = cluster.nodes.filter((node) => node !== primary);
    await set(primary, `${KEY}before`);
    expect(await primary.command('WAIT', 1, 10_000)).toBe(1);

    cluster.partition([primary]);
    await set(primary, `${KEY}behind the cut`);
    await cluster.waitUntil((lines) => owns(line(lines, replica), SLOT), { seenBy: rest });
    expect(await size(replica)).toBe(1);
    await eventually(async () => (await primary.field('cluster_state')) === 'fail');
    await expect(set(primary)).rejects.toThrow('CLUSTERDOWN');
    expect(owns(line(await primary.lines(), primary), SLOT)).toBe(true);

    cluster.heal();
    await cluster.settled();
    await cluster.waitUntil((lines) => line(lines, primary).primary === replica.id);
    expect(await size(primary)).toBe(1);
  });

  it('gives each client a viewpoint of its own, from which it reaches some nodes only', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    await using viewpoint = await cluster.viewpoint();
    const [near, far] = [await cluster.primaryOf(SLOT), await cluster.primaryOf(16_383)];
    const client = new Cluster([...viewpoint.urls], {
      natMap: { ...viewpoint.natMap },
      redisOptions: { commandTimeout: 500, maxRetriesPerRequest: 0 },
      clusterRetryStrategy: () => null,
    });
    try {
      expect(await client.set(KEY, 'value')).toBe('OK');
      viewpoint.reachOnly([near]);
      expect(await client.get(KEY)).toBe('value');
      await expect(client.get(FAR_KEY)).rejects.toThrow('timed out');
      expect(await far.command('PING')).toBe('PONG');
      viewpoint.reachOnly(cluster.nodes);
    } finally {
      client.disconnect();
    }
  });

  it('lets a primary join, which can own slots, and leave again', async () => {
    await using cluster = await startCluster({ replicas: 0 });
    const from = await cluster.primaryOf(SLOT);
    const joined = await cluster.join();
    await cluster.moveSlot(SLOT, joined);
    expect(await cluster.primaryOf(SLOT)).toBe(joined);
    await cluster.moveSlot(SLOT, from);
    await cluster.remove(joined);
    await cluster.waitUntil((lines) => lines.length === 3);
  });
});
