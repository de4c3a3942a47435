import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Lock } from '../../lib/core/lock.js';
import { type ClusterNode, type MoveStep, startCluster, type TestCluster } from '../support/cluster.js';
import {
  allGranted,
  contenderOn,
  keyOf,
  keysAt,
  PATIENT,
  queueOf,
  resourceOn,
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
/** Of different partitions of `from`: each is moved once. */
let unused: string[];

beforeAll(async () => {
  // One of the nodes stands still for a while, and must not be found to have failed.
  cluster = await startCluster({ replicas: 0, nodeTimeout: 15_000 });
  [from, to] = cluster.nodes as [ClusterNode, ClusterNode];
  [holder, rival] = await Promise.all([contenderOn(cluster), contenderOn(cluster)]);
  unused = await resourcesOn(from, 40);
});
// The partitions of both nodes may have to wait after the move of the last test.
beforeEach(async () => {
  const resources = [unused[0] ?? '', await resourceOn(to)];
  await Promise.all([holder, rival].map((contender) => allGranted(contender, resources)));
});
afterAll(async () => {
  await Promise.all([holder.close(), rival.close()]);
  await cluster[Symbol.asyncDispose]();
});

function take(count: number): string[] {
  return unused.splice(-count);
}

function move(resource: string, ...steps: readonly MoveStep[]): Promise<void> {
  return cluster.moveSlot(slotOf(resource), to, { from, steps });
}

function migrate(resource: string, ...keys: readonly string[]): Promise<void> {
  return cluster.moveSlot(slotOf(resource), to, { from, steps: ['keys'], keys });
}

/** Resolves when a process waits in the queue of a resource. */
async function queued(resource: string): Promise<void> {
  await eventually(async () => (await keysAt(from, resource)).includes(queueOf(resource)));
}

/** One attempt; must not be granted while the lock is held. */
async function intrude(resource: string, held: Lock): Promise<void> {
  const lock = await rival.acquire(resource, TTL, { wait: 0 }).catch(() => undefined);
  if (lock && held.isHeld) throw new Error(`${resource} has two holders`);
  await lock?.release();
}

/** The key of a lock is deleted on whichever node has it, and nothing else is. */
async function expectReleased(resource: string): Promise<void> {
  const left = async (): Promise<string[]> =>
    (await Promise.all([from, to].map((node) => keysAt(node, resource)))).flat();
  await eventually(async () => !(await left()).includes(keyOf(resource)));
  expect(await left()).toContain(sealOf(resource));
}

const NAMES = { lock: keyOf, seal: sealOf, queue: queueOf };
type Name = keyof typeof NAMES;
const ORDERS: readonly (readonly Name[])[] = [
  ['lock', 'seal', 'queue'],
  ['lock', 'queue', 'seal'],
  ['seal', 'lock', 'queue'],
  ['seal', 'queue', 'lock'],
  ['queue', 'lock', 'seal'],
  ['queue', 'seal', 'lock'],
];

// First, because such a move is refused while any slot is moved step by step.
describe('A slot that is moved as a whole', () => {
  it('costs the lock, which a waiter gets when its holder has lost it', async () => {
    const [resource = ''] = take(1);
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    const waiting = rival.acquire(resource, TTL, PATIENT);
    await queued(resource);
    await cluster.moveSlotAtOnce(slotOf(resource), to);
    const taken = await waiting;
    expect(held.isHeld).toBe(false);
    await taken.release();
    await eventually(async () => (await keysAt(to, resource)).every((key) => key === sealOf(resource)));
    expect(await keysAt(from, resource)).toEqual([]);
  });

  it('keeps its lock when the move is given up, which has one holder throughout', async () => {
    const [resource = ''] = take(1);
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
    const [resource = ''] = take(1);
    const lock = await holder.acquire(resource, TTL, PATIENT);
    await from.command('PERSIST', keyOf(resource));
    await Promise.all([cluster.moveSlotAtOnce(slotOf(resource), to), lock.release()]);
    await expectReleased(resource);
  });
});

describe.each([
  { state: 'held', extend: false },
  { state: 'extended', extend: true },
])('A slot whose lock is $state', ({ extend }) => {
  it('can be moved key by key in any order, and a waiter gets the lock when it is lost', async () => {
    const resources = take(ORDERS.length);
    await Promise.all(
      resources.map(async (resource, index) => {
        const held = await holder.acquire(resource, TTL, { ...PATIENT, extend });
        const waiter = rival.acquire(resource, TTL, PATIENT);
        await queued(resource);
        await move(resource, 'importing');
        await intrude(resource, held);
        await move(resource, 'migrating');
        await intrude(resource, held);
        for (const name of ORDERS[index] ?? []) {
          await migrate(resource, NAMES[name](resource));
          await intrude(resource, held);
        }
        await move(resource, 'keys', 'node');
        const taken = await waiter;
        expect(held.isHeld).toBe(false);
        await taken.release();
        expect(await keysAt(to, resource)).toEqual([sealOf(resource)]);
      }),
    );
  });
});

// Protocol 12.4
describe('A release', () => {
  const MOMENTS: Readonly<Record<string, (resource: string) => Promise<void>>> = {
    'before its key is moved': (resource) => move(resource, 'importing', 'migrating'),
    'after its key was moved': async (resource) => {
      await move(resource, 'importing', 'migrating');
      await migrate(resource, keyOf(resource));
    },
    'after all keys were moved': (resource) => move(resource, 'importing', 'migrating', 'keys'),
    'after the move': (resource) => move(resource, 'importing', 'migrating', 'keys', 'node'),
  };

  it.each(Object.keys(MOMENTS))('%s deletes the key', async (moment) => {
    const [resource = ''] = take(1);
    const lock = await holder.acquire(resource, TTL, PATIENT);
    await from.command('PERSIST', keyOf(resource));
    await MOMENTS[moment]?.(resource);
    await lock.release();
    await expectReleased(resource);
  });
});

describe('A move that is given up', () => {
  it('before keys were moved interrupts no holder', async () => {
    const [resource = ''] = take(1);
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    await move(resource, 'importing', 'migrating');
    await held.extend();
    await move(resource, 'stable');
    await held.extend();
    await intrude(resource, held);
    expect(held.isHeld).toBe(true);
    await held.release();
  });

  it('after the lock was moved and maxTtl has passed costs the lock, which has one holder throughout', async () => {
    const [resource = ''] = take(1);
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    await move(resource, 'importing', 'migrating');
    await migrate(resource, keyOf(resource));
    const waiter = rival.acquire(resource, TTL, PATIENT);
    while (held.isHeld) await intrude(resource, held);
    await eventually(async () => !(await keysAt(to, resource)).includes(keyOf(resource)));
    await move(resource, 'stable');
    const taken = await waiter;
    expect(held.isHeld).toBe(false);
    await taken.release();
  });

  it('after the seal was moved costs the lock, which is granted after its end', async () => {
    const [resource = ''] = take(1);
    const held = await holder.acquire(resource, TTL, { ...PATIENT, extend: true });
    await move(resource, 'importing', 'migrating');
    await migrate(resource, sealOf(resource));
    await move(resource, 'stable');
    const taken = await rival.acquire(resource, TTL, PATIENT);
    expect(held.isHeld).toBe(false);
    await taken.release();
  });
});

it('A slot that goes away and comes back has another seal, so that a lock that was lost meanwhile is not granted while it is held', async () => {
  const [resource = ''] = take(1);
  const held = await holder.acquire(resource, TTL, PATIENT);
  const slot = slotOf(resource);
  await cluster.moveSlot(slot, to, { from });
  await to.command('DEL', keyOf(resource));
  await cluster.moveSlot(slot, from, { from: to });
  // A vote may be up to a second older than what its client knows, so this client begins after the return.
  await using late = await contenderOn(cluster);
  const taken = await late.acquire(resource, TTL, PATIENT);
  expect(held.isHeld).toBe(false);
  await taken.release();
});
