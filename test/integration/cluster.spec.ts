import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis5';
import type { Lock } from '../../lib/locks/lock.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import { cli } from '../support/cli.js';
import { startCluster, type TestCluster } from '../support/cluster.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

/** Wide enough for a busy machine. */
const PATIENT = { masterTimeout: 2_000 } as const;

describe('A cluster of three primaries with a replica each', () => {
  let cluster: TestCluster;
  let url: string;

  beforeAll(async () => {
    cluster = await startCluster({ args: ['--cluster-require-full-coverage', 'no'] });
    url = `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  });

  afterAll(() => cluster[Symbol.asyncDispose]());

  const contender = (source: RedisMasterSource = url, options: RedlockOptions = {}): Promise<Contender> =>
    Contender.on([source], { ...PATIENT, ...options }, {}, { within: 30_000 });

  const slotOf = async (key: string): Promise<number> =>
    Number(await cluster.nodes[0]!.command('CLUSTER', 'KEYSLOT', key));

  it('is one master, however it is given', async () => {
    const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
    const clients = [new Cluster(nodes, { lazyConnect: true }), new Cluster5(nodes, { lazyConnect: true })];
    const sources: RedisMasterSource[] = [url, { cluster: cluster.urls }, { cluster: nodes }, ...clients];
    const contenders = await Promise.all(sources.map((source) => contender(source)));
    for (const [index, holder] of contenders.entries()) {
      await using lock = await holder.acquire(`name ${index}`);
      const others = contenders.map((other) => other.acquire(`name ${index}`, undefined, { wait: 0 }).catch(String));
      const refusals = (await Promise.all(others)).filter((answer) => typeof answer === 'string');
      expect([lock.isHeld, refusals.length]).toEqual([true, contenders.length]);
    }
    expect(clients.map(({ status }) => status)).toEqual(['wait', 'wait']);
    await Promise.all(contenders.map((one) => one.close()));
  });

  it('takes locks on all of its primaries, and excludes each other from them until the release', async () => {
    await using one = await contender();
    await using other = await contender();
    const names = Array.from({ length: 30 }, (_, index) => `invoice:${index}`);
    const locks = await Promise.all(names.map((name) => one.acquire(name)));
    const owners = new Set(
      await Promise.all(names.map(async (name) => (await cluster.primaryOf(await slotOf(name))).id)),
    );
    expect(owners.size).toBe(3);
    const order: string[] = [];
    const waiting = names.map(async (name) => {
      const next = await other.acquire(name, undefined, { wait: '20s' });
      order.push(name);
      await next.release();
    });
    expect(order).toEqual([]);
    await Promise.all(locks.map((lock) => lock.release()));
    await Promise.all(waiting);
    expect(order.sort()).toEqual(names.sort());
  });

  it('takes several resources with a common tag, and names those that have none', async () => {
    await using holder = await contender();
    await using lock = await holder.acquire(['{order-7}:items', '{order-7}:invoice']);
    expect(lock.isHeld).toBe(true);
    await expect(holder.acquire(['order', 'invoice'])).rejects.toThrow(
      'several resources must have a common tag in braces on a cluster, as in {order-7}:items and {order-7}:invoice, ' +
        'so that one server has all of them: "order", "invoice"',
    );
  });

  it('is examined and searched by the command line', async () => {
    await using holder = await contender();
    await using _lock = await holder.acquire('seen:1');
    await using _tagged = await holder.acquire('{seen}:2');
    const examined = await cli(['doctor', '--master', url, '--timeout', '5s']);
    expect(examined.stdout).toContain('1 of 1 master votes');
    const found = await cli(['list', 'seen*', '--master', url, '--json', '--timeout', '5s']);
    const all = await cli(['list', '*', '--master', url, '--json', '--timeout', '5s']);
    const resources = ({ stdout }: { stdout: string }): string[] =>
      (JSON.parse(stdout) as { locks: { resource: string }[] }).locks.map(({ resource }) => resource);
    expect([resources(found), resources(all)]).toEqual([['seen:1'], ['seen:1', '{seen}:2']]);
    const inspected = await cli(['inspect', 'seen:1', '--master', url, '--json', '--timeout', '5s']);
    expect(JSON.parse(inspected.stdout)).toMatchObject({ state: 'held' });
  });

  it('never has two holders while a slot moves, and refuses no call', async () => {
    await using one = await contender();
    await using other = await contender();
    const slot = await slotOf('moving');
    const [first, second, third] = cluster.nodes;
    let holders = 0;
    let most = 0;
    let isOver = false;
    const tokens: number[] = [];
    const work = async (from: Contender): Promise<void> => {
      while (!isOver) {
        const lock: Lock = await from.acquire('moving', undefined, { wait: '20s' });
        most = Math.max(most, ++holders);
        tokens.push(await lock.fencingToken());
        holders--;
        await lock.release();
      }
    };
    const working = Promise.all([work(one), work(other)]);
    for (const to of [first!, second!, third!]) {
      if ((await cluster.primaryOf(slot)) !== to) await cluster.moveSlot(slot, to);
      const count = tokens.length;
      await eventually(() => tokens.length > count + 10, 20_000);
    }
    isOver = true;
    await working;
    expect(most).toBe(1);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  it('goes on after a failover, with errors only until the replica is promoted', async () => {
    await using holder = await contender();
    const primary = await cluster.primaryOf(await slotOf('after'));
    const replica = await cluster.replicaOf(primary);
    await primary.kill();
    await expect(holder.acquire('after', undefined, { wait: 0 })).rejects.toThrow();
    await eventually(async () => (await replica.field('role')) === 'master', 60_000);
    await using lock = await holder.acquire('after', undefined, { wait: '30s' });
    expect(lock.isHeld).toBe(true);
  });
});
