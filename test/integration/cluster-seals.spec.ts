import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { RedlockConfigError } from '../../lib/core/errors.js';
import { ClusterNames } from '../../lib/redis/cluster/cluster-names.js';
import { partitionOf, hashSlotOf as slotOfKey } from '../../lib/redis/cluster/cluster-map.js';
import { SEAL } from '../../lib/redis/scripts/lua.generated.js';
import { type ClusterNode, ownLine, startCluster, type TestCluster } from '../support/cluster.js';
import {
  allGranted,
  contenderOn,
  PATIENT,
  resourceOn,
  resourcesOn,
  sealOf,
  SETTINGS,
  sourceOf,
  TTL,
} from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import { startMasters } from '../support/masters.js';
import { Monitor } from '../support/monitor.js';
import { Contender } from '../support/redlocks.js';

// A cluster that is new or was emptied does not vote for some seconds.
jest.setTimeout(120_000);

let cluster: TestCluster;
let node: ClusterNode;
let resource: string;

beforeAll(async () => {
  cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
  [node] = cluster.nodes as [ClusterNode];
  resource = await resourceOn(node);
});
afterAll(() => cluster[Symbol.asyncDispose]());

async function nonceOf(name: string): Promise<unknown> {
  return node.command('HGET', sealOf(name), 'nonce');
}

describe('The seal of a partition', () => {
  it('is written once when many clients find the partition without one at the same time', async () => {
    await using monitor = await Monitor.on(node.port);
    const contenders = await Promise.all(Array.from({ length: 5 }, () => contenderOn(cluster)));
    await Promise.all(contenders.map((contender) => allGranted(contender, [resource])));
    await monitor.settle();
    const written = (name: string): number =>
      monitor.seen.filter(({ isInScript, args }) => {
        const [command = '', key = ''] = args;
        // MONITOR escapes what cannot be printed.
        return isInScript && command.toUpperCase() === 'DEL' && key === sealOf(name).replace('\0', '\\x00');
      }).length;
    const resources = await resourcesOn(node, 80);
    expect(resources.map(written)).toEqual(resources.map(() => 1));
    await Promise.all(contenders.map((contender) => contender.close()));
  });

  it('is written once when clients lose the data together, and keeps out a client that is late', async () => {
    await using first = await contenderOn(cluster);
    await using second = await contenderOn(cluster);
    await Promise.all([first, second].map((contender) => allGranted(contender, [resource])));
    const before = await nonceOf(resource);
    await cluster.flush(node);
    await Promise.allSettled([first, second].map((contender) => contender.acquire(resource, TTL, { wait: 0 })));
    await eventually(async () => ((await nonceOf(resource)) ?? before) !== before);
    const agreed = await nonceOf(resource);
    await Promise.all([first, second].map((contender) => allGranted(contender, [resource])));
    await using late = await contenderOn(cluster);
    await allGranted(late, [resource]);
    expect(await nonceOf(resource)).toBe(agreed);
  });

  it('is not read or written without a permission, and the refusal names it', async () => {
    await using contender = await contenderOn(cluster, SETTINGS);
    await contender.acquire(resource, TTL, { wait: 0 }).catch(() => undefined);
    await node.command('ACL', 'SETUSER', 'default', '-time');
    try {
      await cluster.flush(node);
      const refusal = async (): Promise<string> =>
        contender.acquire(resource, TTL, { wait: 0 }).then(
          () => '',
          (error: unknown) => String(error),
        );
      await eventually(async () => (await refusal()).includes('its seal cannot be read or written'));
      expect(await refusal()).toContain("no permissions to run the 'time' command");
    } finally {
      await node.command('ACL', 'SETUSER', 'default', '+time');
    }
  });

  // Protocol 12.6
  it('is refused if it comes late: for another run, history, node, claim or seal than there is now', async () => {
    await using contender = await contenderOn(cluster);
    await allGranted(contender, [resource]);
    const old = await node.field('run_id');
    await cluster.restart(node);
    await cluster.settled();
    await allGranted(contender, [resource]);
    const [run, replid] = [await node.field('run_id'), await node.field('master_replid')];
    const { epoch } = await ownLine(node);
    const nonce = String(await nonceOf(resource));
    const now = { run, replid, owner: node.id, epoch, nonce };
    const seal = (basis: object): Promise<unknown> => {
      const expected = Object.values({ ...now, ...basis }) as (string | number)[];
      return node.command('EVAL', SEAL, 1, sealOf(resource), ...expected, 1_000, 'nonce', 'by hand');
    };
    expect(old).not.toBe(run);
    const wrong = [
      { run: old },
      { replid: '0'.repeat(40) },
      { owner: cluster.nodes[1]?.id },
      { epoch: epoch - 1 },
      { nonce: 'other' },
      { nonce: '' },
    ];
    for (const basis of wrong) expect([basis, await seal(basis)]).toEqual([basis, 0]);
    expect(await nonceOf(resource)).toBe(nonce);
    expect(await seal({})).toBe(1);
    expect(await nonceOf(resource)).toBe('by hand');
  });
});

describe('A cluster', () => {
  // Protocol 12.10
  it('has one vote, by however many of its nodes it is named', async () => {
    const [one, ...others] = cluster.urls;
    const twins = [sourceOf({ urls: [one!] }), sourceOf({ urls: others })];
    await expect(Contender.on(twins, SETTINGS, {}, { within: 3_000 })).rejects.toThrow('it is the same server as');
  });

  // Protocol 12.2
  it('has one connection to each primary, also if it announces another name than the one that was given', async () => {
    const urls = cluster.nodes.map(({ port }) => `redis://localhost:${port}`);
    await using contender = await contenderOn({ urls }, { ...SETTINGS, restartGuard: false, instance: 'counted' });
    await (await contender.acquire(resource, TTL, { wait: 0 })).release();
    const connections = async (one: ClusterNode): Promise<number> =>
      String(await one.command('CLIENT', 'LIST')).split('name=nestjs-redlock:counted').length - 1;
    await eventually(async () => (await Promise.all(cluster.nodes.map(connections))).every((count) => count === 1));
    expect(contender.redlock.status().canVote).toBe(true);
  });

  // Protocol 12.9
  it('is waited for at the primary of the key, on a channel that names the run of that primary', async () => {
    await using holder = await contenderOn(cluster);
    await using waiting = await contenderOn(cluster);
    await Promise.all([holder, waiting].map((contender) => allGranted(contender, [resource])));
    const [, run = ''] = /run_id:(\w+)/.exec(String(await node.command('INFO', 'server'))) ?? [];
    const lock = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    const turn = waiting.acquire(resource, TTL, PATIENT);
    const names = new ClusterNames('lock:');
    const queue = names.queueOf(partitionOf(resource), names.inPartition(partitionOf(resource), `lock:${resource}`));
    await eventually(async () => (await node.command('EXISTS', queue)) === 1);
    const [waiter] = (await node.command('ZRANGE', queue, '0', '-1')) as string[];
    expect(waiter).toMatch(new RegExp(`^lock:\0wake:[\\w-]{28}@${run}$`));
    expect(await node.command('PUBSUB', 'NUMSUB', waiter!)).toEqual([waiter, 1]);
    await lock.release();
    await (await turn).release();
  });

  it.each([true, false])('refuses a single server at once (restart guard: %s)', async (restartGuard) => {
    await using masters = await startMasters(1);
    const contender = contenderOn(masters, { ...SETTINGS, restartGuard });
    await expect(contender).rejects.toThrow('it is not a node of a cluster: give it as redis://host:port');
  });

  it.each(['lock{', '}:', '{a}:'])('refuses the prefix %s, which would be in front of the tag', async (keyPrefix) => {
    const contender = Contender.on([sourceOf(cluster)], { ...SETTINGS, keyPrefix });
    await expect(contender).rejects.toBeInstanceOf(RedlockConfigError);
  });

  it('grants several resources of different primaries in any order under load, without deadlock, second holders and leftovers', async () => {
    const contenders = await Promise.all([1, 2, 3].map(() => contenderOn(cluster)));
    const resources = (await Promise.all(cluster.nodes.map(resourceOn))) as [string, string, string];
    await Promise.all(contenders.map((contender) => allGranted(contender, resources)));
    const [a, b, c] = resources;
    const choices = [[a, b, c], [c, b, a], [b, a], [c, a], [b, c], [a], [c]];
    const inside = new Map<string, number>();
    const overlaps: string[] = [];
    let sections = 0;
    const work = async (contender: Contender, wanted: readonly string[]): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        const lock = await contender.acquire(wanted, undefined, { ...PATIENT, extend: true });
        for (const resource of wanted) {
          const count = (inside.get(resource) ?? 0) + 1;
          inside.set(resource, count);
          if (count > 1) overlaps.push(resource);
        }
        await new Promise((resolve) => setImmediate(resolve));
        if (lock.isHeld) sections++;
        for (const resource of wanted) inside.set(resource, (inside.get(resource) ?? 0) - 1);
        await lock.release();
      }
    };
    await Promise.all(contenders.flatMap((contender) => choices.map((wanted) => work(contender, wanted))));
    expect(overlaps).toEqual([]);
    expect(sections).toBe(20 * contenders.length * choices.length);
    const leftovers = async (): Promise<string[]> => {
      const keys = await Promise.all(cluster.nodes.map((one) => one.command('KEYS', '*') as Promise<string[]>));
      return keys.flat().filter((key) => !/\0seal$/.test(key));
    };
    await eventually(async () => (await leftovers()).length === 0);
    await Promise.all(contenders.map((contender) => contender.close()));
  });
});

describe('Every script', () => {
  // Protocol 12.3
  it('declares all its keys, which are in one slot', async () => {
    await using monitor = await Monitor.on(node.port);
    await using holder = await contenderOn(cluster);
    await using waiting = await contenderOn(cluster);
    const far = await resourceOn(cluster.nodes[1]!);
    await Promise.all([holder, waiting].map((contender) => allGranted(contender, [resource, far])));
    const scenes: readonly ((contender: Contender) => Promise<unknown>)[] = [
      async (contender) => {
        const lock = await contender.acquire(resource, TTL, { ...PATIENT, extend: true });
        await lock.extend();
        await lock.fencingToken();
        await lock.state.get({ onUncertain: 'newest' });
        await lock.state.set('state');
        await lock.release();
      },
      async (contender) => (await contender.acquire([resource, far], TTL, PATIENT)).release(),
      async (contender) => (await contender.acquire(resource, TTL, { ...PATIENT, mode: 'shared' })).release(),
      async (contender) => (await contender.acquire(resource, TTL, { ...PATIENT, permits: 2 })).release(),
      async (contender) => (await contender.acquire(resource, TTL, { ...PATIENT, minHold: 10 })).release(),
      async (contender) => contender.redlock.inspector.inspect(resource),
    ];
    // Each beside each other one, so that they also wait for one another, in calls of several requests.
    for (let round = 0; round < 3; round++) {
      await Promise.all([...scenes, ...scenes].flatMap((scene) => [scene(holder), scene(waiting)]));
    }
    await monitor.settle();
    const problems = undeclared(monitor.seen);
    expect([...new Set(problems)]).toEqual([]);
    const commands = monitor.seen.map(({ args }) => args[0]?.toLowerCase());
    expect(commands).toEqual(expect.arrayContaining(['evalsha', 'zadd', 'zpopmin', 'set', 'hset']));
  });

  /** Names that a script uses without having declared them, and declarations of none or of several slots. */
  function undeclared(seen: Monitor['seen']): string[] {
    let declared: readonly string[] = [];
    return seen.flatMap(({ isInScript, args: [name = '', ...args] }) => {
      if (isInScript) {
        const used = args.filter((arg) => arg.startsWith('lock:{'));
        return used.filter((key) => !declared.includes(key)).map((key) => `${name} ${key}`);
      }
      if (!/^(?:evalsha|eval)$/i.test(name)) return [];
      declared = args.slice(2, 2 + Number(args[1]));
      const slots = new Set(declared.map(slotOfKey));
      return slots.size === 1 ? [] : [`${name} with ${slots.size} slots`];
    });
  }
});

// Protocol 12.6
it('A lost partition does not vote for the longest ttl of all processes, also if another one seals it', async () => {
  // Its partitions do not vote for an hour, so this is the last test.
  const third = cluster.nodes[2]!;
  const lost = await resourceOn(third);
  const nonce = async (): Promise<unknown> => third.command('HGET', sealOf(lost), 'nonce');
  await using short = await contenderOn(cluster);
  await allGranted(short, [lost]);
  // The other process does not read the seals again.
  await using long = await contenderOn(cluster, { ...SETTINGS, maxTtl: '1h' });
  await using held = await long.acquire(lost, '1h', PATIENT);
  const before = await nonce();
  await cluster.flush(third);
  await expect(short.acquire(lost, TTL, { wait: 0 })).rejects.toThrow('does not vote');
  await eventually(async () => ((await nonce()) ?? before) !== before);
  const [at, from] = (await third.command('HMGET', sealOf(lost), 'at', 'from')) as [string, string];
  expect(held.isHeld).toBe(true);
  expect(Number(from) - Number(at)).toBeGreaterThan(3_600_000);
});
