import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startCluster, type TestCluster } from '../support/cluster.js';
import { allGranted, contenderOn, PATIENT, resourceOn, SETTINGS } from '../support/cluster-locks.js';
import { eventually } from '../support/eventually.js';
import { COUNTERS } from '../support/leftovers.js';
import type { Contender } from '../support/redlocks.js';

jest.setTimeout(120_000);

/** Locks of each worker. */
const TIMES = 20;
const SEAL = /\0seal$/;

let cluster: TestCluster;
let contenders: Contender[];
/** One resource of each primary. */
let resources: [string, string, string];

beforeAll(async () => {
  cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
  contenders = await Promise.all([1, 2, 3].map(() => contenderOn(cluster, SETTINGS)));
  resources = (await Promise.all(cluster.nodes.map(resourceOn))) as [string, string, string];
  await Promise.all(contenders.map((contender) => allGranted(contender, resources)));
});
afterAll(async () => {
  await Promise.all(contenders.map((contender) => contender.close()));
  await cluster[Symbol.asyncDispose]();
});

/** Keys that are neither seals nor counters. */
async function leftovers(): Promise<string[]> {
  const keys = await Promise.all(cluster.nodes.map((node) => node.command('KEYS', '*') as Promise<string[]>));
  return keys.flat().filter((key) => !COUNTERS.test(key) && !SEAL.test(key));
}

describe('Several resources of different primaries', () => {
  it('are locked in any order under load, without deadlock, second holders and leftovers', async () => {
    const [a, b, c] = resources;
    const choices = [[a, b, c], [c, b, a], [b, a], [c, a], [b, c], [a], [c]];
    const inside = new Map<string, number>();
    const overlaps: string[] = [];
    let sections = 0;
    const work = async (contender: Contender, wanted: readonly string[]): Promise<void> => {
      for (let i = 0; i < TIMES; i++) {
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
    expect(sections).toBe(TIMES * contenders.length * choices.length);
    await eventually(async () => (await leftovers()).length === 0);
  });

  it('have fencing tokens that grow, in whatever combination they are locked', async () => {
    const [a, b, c] = resources;
    const combinations = [[a], [a, b], [b], [b, c], [c], [c, a], [a, b, c]];
    const last = new Map<string, number>();
    const disorder: string[] = [];
    for (let i = 0; i < TIMES * combinations.length; i++) {
      const wanted = combinations[i % combinations.length] ?? [];
      const lock = await contenders[i % contenders.length]!.acquire(wanted, undefined, PATIENT);
      const token = await lock.fencingToken();
      await lock.release();
      for (const resource of wanted) {
        if (token <= (last.get(resource) ?? 0)) disorder.push(`${resource}: ${token} after ${last.get(resource)}`);
        last.set(resource, token);
      }
    }
    expect(disorder).toEqual([]);
    expect(last.size).toBe(3);
  });

  it('are not locked while one of them is held, and none of the others is kept', async () => {
    const [holder, rival] = contenders as [Contender, Contender];
    for (const held of resources) {
      const lock = await holder.acquire(held, undefined, { ...PATIENT, extend: true });
      await expect(rival.acquire(resources, undefined, { wait: 0 })).rejects.toThrow(/held/);
      await eventually(async () => (await leftovers()).length === 1);
      await lock.release();
    }
    await eventually(async () => (await leftovers()).length === 0);
  });

  it('wake a waiter of all of them when the last one is released', async () => {
    const [first, second, waiting] = contenders as [Contender, Contender, Contender];
    const [a, b, c] = resources;
    const locks = [
      await first.acquire([c, a], undefined, { ...PATIENT, extend: true }),
      await second.acquire(b, undefined, { ...PATIENT, extend: true }),
    ];
    const turn = waiting.acquire([a, b, c], undefined, PATIENT);
    await eventually(async () => (await leftovers()).some((key) => key.includes('queue:')));
    for (const lock of locks) await lock.release();
    await (await turn).release();
    await eventually(async () => (await leftovers()).length === 0);
    expect(locks.map(({ loss }) => loss)).toEqual([undefined, undefined]);
  });
});
