import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type ClusterNode, line, startCluster, type TestCluster, type Viewpoint } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, TTL } from '../support/cluster-locks.js';
import type { Contender } from '../support/redlocks.js';

// An election takes two node timeouts, on a busy machine more.
jest.setTimeout(120_000);

let cluster: TestCluster;
let views: [Viewpoint, Viewpoint];
/** One client on each side of the partition. */
let minority: Contender;
let majority: Contender;

beforeAll(async () => {
  cluster = await startCluster({ nodeTimeout: 1_500, partitions: true });
  views = [await cluster.viewpoint(), await cluster.viewpoint()];
  [minority, majority] = [await contenderOn(views[0]), await contenderOn(views[1])];
});
afterEach(heal);
afterAll(async () => {
  await Promise.all([minority.close(), majority.close()]);
  await Promise.all(views.map((view) => view[Symbol.asyncDispose]()));
  await cluster[Symbol.asyncDispose]();
});

/** Cuts off one node, with one client. */
function cutOff(alone: ClusterNode): void {
  const rest = cluster.nodes.filter((node) => node !== alone);
  cluster.partition([alone], rest);
  views[0].reachOnly([alone]);
  views[1].reachOnly(rest);
}

async function heal(): Promise<void> {
  cluster.heal();
  for (const view of views) view.reachOnly(cluster.nodes);
  await cluster.settled();
}

async function scene(): Promise<{ primary: ClusterNode; replica: ClusterNode; resource: string }> {
  const primary = await cluster.primaryOf(0);
  const resource = await resourceOn(primary);
  await Promise.all([minority, majority].map((contender) => allGranted(contender, [resource])));
  return { primary, replica: await cluster.replicaOf(primary), resource };
}

describe('A primary that is cut off with a client', () => {
  it('keeps no lock for it that a client of the majority is granted after the failover', async () => {
    const { primary, replica, resource } = await scene();
    const held = await minority.acquire(resource, TTL, { ...PATIENT, extend: true });
    cutOff(primary);
    const seenBy = cluster.nodes.filter((node) => node !== primary);
    await cluster.waitUntil((lines) => line(lines, replica).isPrimary, { seenBy });
    const taken = await majority.acquire(resource, TTL, PATIENT);
    expect(held.isHeld).toBe(false);
    await expect(minority.acquire(resource, TTL, { wait: 0 })).rejects.toThrow();
    expect(taken.isHeld).toBe(true);
    await taken.release();
    await heal();
    await Promise.all([minority, majority].map((contender) => allGranted(contender, [resource])));
  });

  it('grants to the majority only what its client has released or lost, if the partition ends soon', async () => {
    const { primary, resource } = await scene();
    const held = await minority.acquire(resource, TTL, { ...PATIENT, extend: true });
    cutOff(primary);
    await expect(majority.acquire(resource, TTL, { wait: 0 })).rejects.toThrow();
    const waiting = majority.acquire(resource, TTL, PATIENT).then((taken) => ({ taken, wasHeld: held.isHeld }));
    await heal();
    await held.release();
    const { taken, wasHeld } = await waiting;
    expect(wasHeld).toBe(false);
    await taken.release();
  });
});
