import { describe, expect, it, jest } from '@jest/globals';
import { hashSlotOf } from '../../lib/redis/cluster/cluster-map.js';
import { cli, cliProcess } from '../support/cli.js';
import { startCluster, type TestCluster } from '../support/cluster.js';
import { command } from '../support/command.js';
import { allVote, GUARDED } from '../support/guarded.js';
import { Contender } from '../support/redlocks.js';

jest.setTimeout(60_000);

/** The servers run on busy machines. */
const PATIENTLY = ['--timeout', '20s'];
/** Without replicas, a primary that is down stays the owner of its slots. */
const STEADY = { replicas: 0, nodeTimeout: 60_000, args: ['--cluster-require-full-coverage', 'no'] };
const OPTIONS = { masterTimeout: '2s', maxTtl: '5m', restartGuard: false } as const;
const RESOURCES = ['order:1', 'order:2', 'order:3', 'order:4', 'order:5', 'order:6', 'order:7', 'order:8'];

interface Doctor {
  readonly voters: readonly string[];
  readonly findings: readonly { readonly level: string; readonly master?: string; readonly what: string }[];
  readonly examined: readonly {
    readonly cluster?: { readonly shards: readonly { readonly master: string; readonly standing?: object }[] };
  }[];
}

function urlOf({ nodes }: TestCluster): string {
  return `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
}

async function run(cluster: TestCluster, ...args: string[]) {
  return cli([...args, '--master', urlOf(cluster), ...PATIENTLY]);
}

async function json(cluster: TestCluster, ...args: string[]): Promise<unknown> {
  return JSON.parse((await run(cluster, ...args, '--json')).stdout);
}

describe('The command line on a cluster', () => {
  it('lists, inspects and releases locks and permits of all primaries', async () => {
    await using cluster = await startCluster(STEADY);
    await using contender = await Contender.on([{ cluster: cluster.urls }], OPTIONS);
    const locks = [];
    for (const resource of RESOURCES) locks.push(await contender.acquire(resource, '60s'));
    const permit = await contender.acquire('pool', '60s', { permits: 3 });
    const shared = await contender.acquire('book', '60s', { mode: 'shared' });
    // Of another program: it has a tag, but not the one of its partition.
    const foreign = 'lock:{other}order:9';
    const owner = await cluster.primaryOf(hashSlotOf(foreign));
    await command(owner.port, 'SET', foreign, 'x');

    const all = (await json(cluster, 'list')) as { locks: { resource: string; slot?: number; sharedBy?: number }[] };
    expect(all.locks.map(({ resource }) => resource)).toEqual(['book', ...RESOURCES, 'pool']);
    const { slot } = all.locks.find(({ resource }) => resource === 'pool')!;
    expect(slot).toBe(permit.slot);
    expect(all.locks.find(({ resource }) => resource === 'book')).toMatchObject({ sharedBy: 1 });
    expect(await json(cluster, 'list', 'order:[12]')).toMatchObject({
      locks: [{ resource: 'order:1' }, { resource: 'order:2' }],
      unasked: [],
    });

    expect(await json(cluster, 'inspect', 'order:3')).toMatchObject({ resource: 'order:3', state: 'held' });
    const released = await run(cluster, 'release', 'order:3', '--yes', '--at-once');
    expect(released).toMatchObject({ status: 0, stdout: expect.stringContaining('"order:3" is free now') });
    expect(await json(cluster, 'inspect', 'order:3')).toMatchObject({ state: 'free' });
    const revoked = await run(cluster, 'release', 'order:4', '--yes');
    expect(revoked.stdout).toMatch(/"order:4" is free in at most/);
    await expect(locks[3]!.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await run(cluster, 'release', 'pool', '--permit', `${slot}`, '--yes', '--at-once')).toMatchObject({
      status: 0,
    });
    await Promise.all([...locks, permit, shared].map((lock) => lock.release()));
  });

  it('shows the locks of the other primaries while one is down, and says so', async () => {
    await using cluster = await startCluster(STEADY);
    await using contender = await Contender.on([{ cluster: cluster.urls }], OPTIONS);
    for (const resource of RESOURCES) await contender.acquire(resource, '60s');
    const [first] = cluster.nodes;
    await cluster.kill(first!);

    const args = ['list', '--master', urlOf(cluster), ...PATIENTLY, '--json'];
    const { status, stdout, stderr } = await cliProcess(args);
    const { locks } = JSON.parse(stdout) as { locks: { resource: string; state: string }[] };
    expect(status).toBe(1);
    expect(locks.length).toBeGreaterThan(0);
    expect(locks.length).toBeLessThan(RESOURCES.length);
    expect(locks.every(({ state }) => state === 'held')).toBe(true);
    expect(stderr).toContain(`was not asked: 127.0.0.1:${first!.port}: `);
  });

  it('examines each primary, and finds nothing wrong with a good cluster', async () => {
    await using cluster = await startCluster({ nodeTimeout: 60_000 });
    const { status, stdout } = await run(cluster, 'doctor', '--json');
    const { examined, findings } = JSON.parse(stdout) as Doctor;
    expect(findings.filter(({ level }) => level === 'problem')).toEqual([]);
    expect(status).toBe(0);
    const primaries = cluster.nodes.slice(0, 3).map(({ port }) => `127.0.0.1:${port}`);
    const shards = examined[0]!.cluster!.shards;
    expect(shards.map(({ master }) => master)).toEqual([...primaries].sort());
    for (const shard of shards) {
      expect(shard).toMatchObject({ mode: 'cluster', replicas: 1, nodeTimeout: 60_000, state: 'ok', missing: [] });
    }
    const table = await cliProcess(['doctor', '--master', urlOf(cluster), ...PATIENTLY]);
    expect(table.stdout).toMatch(/partitions +(?:│ 8[56] of 256 +){3}│/);
    expect(table.stdout).toContain('healthy: 1 of 1 master votes');
  });

  it('finds a primary and a replica that cannot be reached, and names them', async () => {
    await using cluster = await startCluster({ nodeTimeout: 60_000 });
    const [first, , , , replica] = cluster.nodes;
    await cluster.kill(first!);
    await cluster.kill(replica!);
    const { status, stdout } = await cli(['doctor', '--master', urlOf(cluster), '--timeout', '5s', '--json']);
    const { voters, findings } = JSON.parse(stdout) as Doctor;
    // The locks of the other primaries work, but this is a problem.
    expect([status, voters]).toEqual([1, [expect.stringContaining('cluster of')]]);
    const problems = findings.filter(({ level }) => level === 'problem');
    expect(problems).toContainEqual(expect.objectContaining({ master: `127.0.0.1:${first!.port}` }));
    expect(problems.map(({ what }) => what)).toContainEqual(
      expect.stringContaining(`its replica 127.0.0.1:${replica!.port} cannot be reached`),
    );
  });

  it('finds slots without a primary, missing permissions, and the seals of an application', async () => {
    await using cluster = await startCluster(STEADY);
    await using contender = await Contender.on([{ cluster: cluster.urls }], { ...GUARDED, masterTimeout: 500 });
    await allVote(contender);
    const [first, second] = cluster.nodes;
    const owned = await cluster.primaryOf(1);
    for (const node of cluster.nodes) await command(node.port, 'CLUSTER', 'DELSLOTS', 1);
    expect(owned).toBe(first);
    const rules = ['on', 'nopass', '~*', '&*', '+@all', '-cluster|info', '-publish'];
    await command(second!.port, 'ACL', 'SETUSER', 'default', ...rules);
    const { findings, examined } = JSON.parse((await run(cluster, 'doctor', '--json')).stdout) as Doctor;
    const problems = findings.filter(({ level }) => level === 'problem').map(({ master, what }) => [master, what]);
    expect(problems).toContainEqual([expect.stringMatching(/^cluster of/), expect.stringMatching(/^1 of 16384 slots/)]);
    expect(problems).toContainEqual([
      `127.0.0.1:${second!.port}`,
      expect.stringContaining('its user lacks +publish +cluster|info'),
    ]);
    for (const { standing } of examined[0]!.cluster!.shards) expect(standing).toMatchObject({ isMet: true, wait: 0 });
  });

  it('refuses to trust a cluster', async () => {
    const url = 'redis+cluster://127.0.0.1:7000';
    const { status, stderr } = await cli(['trust', url, '--master', url, '--yes']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('a cluster cannot be trusted')]);
    const ofNode = await cli(['trust', '127.0.0.1:7000', '--master', url, '--yes']);
    expect([ofNode.status, ofNode.stderr]).toEqual([2, expect.stringContaining('a cluster cannot be trusted')]);
  });
});
