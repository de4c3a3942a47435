import { describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../lib/locks/lock.js';
import { type Followed, Rig } from '../support/rig.js';
import { type Behaviour, obeys, says, unreachable } from '../support/scripted-master.js';

/** Nothing arrives over a closed connection. */
const untilClosed: Behaviour = (request, reply, master) =>
  (master.closed ? says(unreachable) : obeys)(request, reply, master);

/** A process that needs several rounds for a lock: as soon as another process releases what it has. */
interface Contention {
  readonly rig: Rig;
  readonly lock: Followed<Lock>;
  readonly begin: () => Promise<void>;
}

/** A notified waiter asks the masters all at once. */
async function notified(options: { permits?: number } = {}): Promise<Contention> {
  const rig = new Rig();
  const held = await rig.peer().lock('a', options);
  const lock = await rig.outcomeAfter(100, rig.acquire('a', { ...options, wait: 60_000 }));
  return { rig, lock, begin: () => held.release() };
}

/** A waiter for a permit asks its home master first, and then the others. */
const homeFirst = (): Promise<Contention> => notified({ permits: 1 });

/** A waiter for several resources, which another process has. */
async function several(): Promise<Contention> {
  const rig = new Rig();
  const held = await rig.peer().lock(['a', 'b']);
  const lock = await rig.outcomeAfter(100, rig.acquire(['b', 'a'], { ttl: 3_000, wait: 60_000 }));
  return { rig, lock, begin: () => held.release() };
}

/** A holder draws its fencing token. */
async function drawing(): Promise<Contention> {
  const rig = new Rig();
  const lock = await rig.outcomeOf(rig.acquire('a'));
  const begin = async (): Promise<void> => {
    await lock.value!.fencingToken().catch(() => undefined);
  };
  return { rig, lock, begin };
}

/** A holder releases a lock for which a call of its process waits. */
async function releasing(): Promise<Contention> {
  const rig = new Rig();
  const held = await rig.lock('a');
  const lock = await rig.outcomeAfter(3, rig.acquire('a', { wait: 60_000 }));
  return { rig, lock, begin: () => held.release() };
}

const MASTER_TIMEOUT = 50;

/** More steps between two promises than any of them takes. */
const STEPS = 60;

describe('Draining a process', () => {
  it.each([
    ['the last lock is released', 500, undefined],
    ['the time of one of them is over, which takes the lock away', 1_000, { cause: 'shutdown' }],
  ])('ends for every caller when %s', async (_, end, loss) => {
    const rig = new Rig();
    const lock = await rig.lock('a');
    const drains = [3_000, 1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    await rig.clock.advance(500);
    if (!loss) await rig.settle(lock.release());
    await rig.clock.advance(4_500);
    expect(drains.map(({ at }) => at)).toEqual([end, end, end]);
    expect(rig.losses).toMatchObject(loss ? [loss] : []);
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it('ends at once when the process is closed meanwhile', async () => {
    const rig = new Rig();
    await rig.lock('a');
    const waiting = rig.follow(rig.acquire('a'));
    const drains = [1_000, 2_000].map((timeout) => rig.follow(rig.redlock.drain(timeout)));
    const closes = [rig.redlock.close(), rig.redlock.close()].map((close) => rig.follow(close));
    await rig.clock.settle();
    expect(waiting.state).toBe('rejected');
    expect([...drains, ...closes].map(({ at }) => at)).toEqual([0, 0, 0, 0]);
    expect([rig.keys, rig.clock.pendingTimers]).toEqual([[0, 0, 0], 0]);
  });
});

describe('Closing a process', () => {
  it.each([
    ['a waiter that was notified', () => notified()],
    ['a waiter that asks its home master first', homeFirst],
    ['a waiter for several resources', several],
    ['a holder that draws its fencing token', drawing],
    ['a waiter whose own process releases the lock', releasing],
  ])('at any step of %s takes one master timeout at most, and leaves no key', async (_, contention) => {
    for (let steps = 0; steps <= STEPS; steps++) {
      for (const drains of [false, true]) {
        const { rig, lock, begin } = await contention();
        void begin();
        for (let step = 0; step < steps; step++) await Promise.resolve();
        if (steps === STEPS) {
          // The lock is handed out in a turn of its own.
          await rig.clock.settle();
          expect(lock.state).toBe('fulfilled');
        }
        for (const { memory } of rig.masters) memory.pause();
        rig.scriptAll(untilClosed);
        const since = rig.clock.now;
        if (drains) void rig.redlock.drain(0);
        const closed = await rig.outcomeAfter(1_000, rig.redlock.close());
        expect({ steps, closed: closed.at! - since <= MASTER_TIMEOUT }).toEqual({ steps, closed: true });
        for (const { memory } of rig.masters) memory.resume();
        await rig.clock.settle();
        expect({ steps, keys: rig.keys }).toEqual({ steps, keys: [0, 0, 0] });
      }
    }
  });

  it('leaves no key on masters that hung by then, and answer later', async () => {
    const rig = new Rig();
    rig.scriptAll(untilClosed);
    await rig.lock('a');
    const hung = rig.masters.slice(1);
    for (const { memory } of hung) memory.pause();
    for (const resource of ['b', 'c', 'd', 'e']) rig.follow(rig.acquire(resource, { wait: 1_000 }));
    await rig.clock.advance(200);
    expect(rig.silences).toHaveLength(2);
    expect(await rig.outcomeAfter(100, rig.redlock.close())).toMatchObject({ state: 'fulfilled' });
    for (const { memory } of hung) memory.resume();
    await rig.clock.settle();
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});
