import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type ClusterNode, startCluster, type TestCluster } from '../support/cluster.js';
import {
  allGranted,
  contenderOn,
  keyOf,
  keysAt,
  PATIENT,
  queueOf,
  resourcesOn,
  sealOf,
  slotOf,
  TTL,
} from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import type { Contender } from '../support/redlocks.js';

// After a move, the guard keeps the partitions of the target from voting for some seconds.
jest.setTimeout(120_000);

let cluster: TestCluster;
let from: ClusterNode;
let to: ClusterNode;
let holder: Contender;
let rival: Contender;
let resources: string[];

// A cluster of its own: such a move is refused while any slot is moved step by step.
beforeAll(async () => {
  // One of the nodes stands still for a while, and must not be found to have failed.
  cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
  [from, to] = cluster.nodes as [ClusterNode, ClusterNode];
  [holder, rival] = await Promise.all([contenderOn(cluster), contenderOn(cluster)]);
  resources = await resourcesOn(from, 3);
  await Promise.all([holder, rival].map((contender) => allGranted(contender, resources)));
});
afterAll(async () => {
  await Promise.all([holder.close(), rival.close()]);
  await cluster[Symbol.asyncDispose]();
});

describe('A slot that is moved as a whole', () => {
  it('costs the lock, which a waiter gets when its holder has lost it', async () => {
    const [resource = ''] = resources;
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    const waiting = rival.acquire(resource, TTL, PATIENT);
    await eventually(async () => (await keysAt(from, resource)).includes(queueOf(resource)));
    await cluster.moveSlotAtOnce(slotOf(resource), to);
    const taken = await waiting;
    expect(held.isHeld).toBe(false);
    await taken.release();
    await eventually(async () => (await keysAt(to, resource)).every((key) => key === sealOf(resource)));
    expect(await keysAt(from, resource)).toEqual([]);
  });

  it('keeps its lock when the move is given up, which has one holder throughout', async () => {
    const [, , resource = ''] = resources;
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    const isRefused = async (): Promise<boolean> => {
      const lock = await rival.acquire(resource, TTL, { wait: 0 }).catch(() => undefined);
      await lock?.release();
      return lock === undefined;
    };
    await cluster.giveUpMoveAtOnce(slotOf(resource), to, async () => {
      await held.extend();
      expect(await isRefused()).toBe(true);
    });
    await held.extend();
    expect(await isRefused()).toBe(true);
    expect(await keysAt(to, resource)).toEqual([]);
    await held.release();
  });

  it('deletes the key of a lock that is released meanwhile', async () => {
    const [, resource = ''] = resources;
    const lock = await holder.acquire(resource, TTL, PATIENT);
    await from.command('PERSIST', keyOf(resource));
    await Promise.all([cluster.moveSlotAtOnce(slotOf(resource), to), lock.release()]);
    const left = async (): Promise<string[]> =>
      (await Promise.all([from, to].map((node) => keysAt(node, resource)))).flat();
    await eventually(async () => !(await left()).includes(keyOf(resource)));
    expect(await left()).toContain(sealOf(resource));
  });
});
