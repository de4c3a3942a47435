import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { Lock } from '../../lib/core/lock.js';
import { type ClusterNode, line, startCluster, type TestCluster } from '../support/cluster.js';
import {
  allGranted,
  contenderOn,
  keyOf,
  PATIENT,
  resourceOn,
  resourcesOn,
  Traffic,
  TTL,
  UNGUARDED,
} from '../support/cluster-locks.js';
import type { Contender } from '../support/redlocks.js';

// An election takes two node timeouts, on a busy machine more.
jest.setTimeout(120_000);

/** Locks that outlast the fault on any machine. */
const LONG = { ...UNGUARDED, maxTtl: '1h' } as const;

let cluster: TestCluster;
let holder: Contender;
let rival: Contender;

beforeAll(async () => {
  // Otherwise all primaries refuse everything while one of them is down.
  cluster = await startCluster({ nodeTimeout: 1_500, args: ['--cluster-require-full-coverage', 'no'] });
  [holder, rival] = await Promise.all([contenderOn(cluster), contenderOn(cluster)]);
  const first = await Promise.all((await primaries()).map(resourceOn));
  await Promise.all([allGranted(holder, first), allGranted(rival, first)]);
});
afterEach(async () => {
  for (const node of cluster.nodes) {
    if (!node.isUp) await cluster.restart(node);
    await node.command('ACL', 'SETUSER', 'default', '+@all');
    await node.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'no');
  }
  await cluster.settled();
});
afterAll(async () => {
  await Promise.all([holder.close(), rival.close()]);
  await cluster[Symbol.asyncDispose]();
});

function primaries(): Promise<ClusterNode[]> {
  return Promise.all([0, 8_000, 16_383].map((slot) => cluster.primaryOf(slot)));
}

/** Ends replication, so that the replica lacks what its primary acknowledges from now on. */
async function isolate(primary: ClusterNode): Promise<void> {
  await primary.command('ACL', 'SETUSER', 'default', '-psync', '-sync');
  await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
}

/** A primary, its replica and a resource of it, whose lock the fault will lose. */
interface Scene {
  readonly primary: ClusterNode;
  readonly replica: ClusterNode;
  readonly resource: string;
}

interface Fault {
  readonly name: string;
  /** Before the lock is acquired. */
  readonly prepare?: (scene: Scene) => Promise<unknown>;
  readonly happen: (scene: Scene) => Promise<unknown>;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'a primary restarts empty within the node timeout',
    prepare: ({ replica }) => replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'yes'),
    happen: ({ primary }) => cluster.restart(primary),
  },
  { name: 'FLUSHALL empties a primary', happen: ({ primary }) => cluster.flush(primary) },
  {
    name: 'a primary dies, and its replica takes over',
    prepare: ({ primary }) => isolate(primary),
    happen: async ({ primary, replica }) => {
      await cluster.kill(primary);
      await cluster.waitUntil((lines) => line(lines, replica).isPrimary);
    },
  },
  {
    name: 'a replica is promoted by hand, and its copy of the lock is gone',
    happen: async ({ replica, resource }) => {
      await cluster.failover(replica, 'graceful');
      await replica.command('DEL', keyOf(resource));
    },
  },
  {
    name: 'a replica is promoted by force',
    prepare: ({ primary }) => isolate(primary),
    happen: ({ replica }) => cluster.failover(replica, 'force'),
  },
  {
    name: 'a replica takes over without the votes of the primaries',
    prepare: ({ primary }) => isolate(primary),
    happen: ({ replica }) => cluster.failover(replica, 'takeover'),
  },
];

it.each(FAULTS)('A cluster does not grant a lock that is still held when $name', async ({ prepare, happen }) => {
  const [primary, ...others] = (await primaries()) as [ClusterNode, ClusterNode, ClusterNode];
  const scene = { primary, replica: await cluster.replicaOf(primary), resource: await resourceOn(primary) };
  const elsewhere = (await Promise.all(others.map((node) => resourcesOn(node, 2)))).flat();
  await allGranted(holder, [scene.resource]);
  await prepare?.(scene);
  const held: Lock = await holder.acquire(scene.resource, TTL, { ...PATIENT, extend: true });
  await using traffic = new Traffic(rival, elsewhere);
  await happen(scene);
  const early = await rival.acquire(scene.resource, TTL, { wait: 0 }).catch((error: unknown) => error);
  const grantsBefore = traffic.grants;
  const taken = await rival.acquire(scene.resource, TTL, PATIENT);
  expect(held.isHeld).toBe(false);
  await traffic.end();
  expect(traffic.refusals).toEqual([]);
  expect(traffic.grants).toBeGreaterThan(grantsBefore);
  expect(early).toBeInstanceOf(Error);
  await taken.release();
});

it('A cluster without the restart guard grants a lock that was not replicated when its primary was replaced', async () => {
  const [primary] = (await primaries()) as [ClusterNode];
  const replica = await cluster.replicaOf(primary);
  await using first = await contenderOn(cluster, LONG);
  await using second = await contenderOn(cluster, UNGUARDED);
  const resource = await resourceOn(primary);
  await isolate(primary);
  await using held = await first.acquire(resource, '1h');
  await cluster.failover(replica, 'takeover');
  await using taken = await second.acquire(resource, TTL, PATIENT);
  expect([held.isHeld, taken.isHeld]).toEqual([true, true]);
});
