import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError } from '../../../../lib/core/errors.js';
import type { Lock } from '../../../../lib/core/lock.js';
import { Waiter } from '../../../../lib/core/acquire/waiter.js';
import { WaitQueue } from '../../../../lib/core/acquire/wait-queue.js';
import { Rig } from '../../support/rig.js';
import { TestClock } from '../../support/test-clock.js';

/** Acquires, records its turn, and releases. */
function takeTurn(rig: Rig, name: string, turns: string[], resource: string | string[] = 'a', wait = 60_000) {
  const turn = rig.acquire(resource, { wait }).then(async (lock: Lock) => {
    turns.push(name);
    await lock.release();
  });
  return rig.follow(turn);
}

describe('The turn of this process, of which a master notifies it,', () => {
  function waiting() {
    const clock = new TestClock();
    const queue = new WaitQueue();
    const [first, second] = [1, 2].map(() => new Waiter(clock, 1_000, undefined)) as [Waiter, Waiter];
    const entry = queue.join(['a'], first);
    queue.join(['a'], second);
    return { clock, queue, first, second, entry };
  }

  it('goes to the first waiter, which is woken', async () => {
    const { queue, first } = waiting();
    expect(queue.notify('a')).toBe(true);
    expect(await first.pause()).toBe('next');
  });

  it('is passed on if there is no waiter for the resource', () => {
    expect(waiting().queue.notify('b')).toBe(false);
  });

  it('is passed on if the wait of the first has ended', () => {
    const { queue, first } = waiting();
    first.end();
    expect(queue.notify('a')).toBe(false);
  });

  it('is passed on if this process holds the lock', () => {
    const { queue, entry } = waiting();
    entry.becomeHolder();
    expect(queue.notify('a')).toBe(false);
    entry.leave();
    expect(queue.notify('a')).toBe(true);
  });
});

describe('Waiters of one process', () => {
  // Protocol 5.2
  it('are served first come, first served', async () => {
    const rig = new Rig();
    const first = await rig.lock('a');
    const turns: string[] = [];
    const names = Array.from({ length: 50 }, (_, i) => `${i}`);
    for (const name of names) takeTurn(rig, name, turns);
    await rig.clock.advance(10);
    expect(turns).toEqual([]);
    await first.release();
    await rig.clock.advance(0);
    for (let i = 0; i < 50; i++) await rig.clock.settle();
    expect(turns).toEqual(names);
    expect(rig.clock.now).toBe(10);
  });

  it('cause no traffic behind the holder', async () => {
    const rig = new Rig();
    await rig.lock('a', { ttl: 30_000 });
    for (let i = 0; i < 100; i++) takeTurn(rig, `${i}`, [], 'a', 5_000);
    await rig.clock.advance(4_000);
    expect(rig.masters.map((master) => master.requests('acquire').length)).toEqual([1, 1, 1]);
  });

  it('cause no traffic behind the one that contends, even when they give up', async () => {
    const countWith = async (waiters: number): Promise<number> => {
      const rig = new Rig();
      await new Rig({}, rig).lock('a', { ttl: 30_000 });
      takeTurn(rig, 'head', []);
      for (let i = 0; i < waiters; i++) takeTurn(rig, `${i}`, [], 'a', 500 + 10 * i);
      await rig.clock.advance(4_000);
      return rig.masters[0]!.requests('acquire').length;
    };
    expect(await countWith(100)).toBe(await countWith(0));
  });

  it('leave at once when their time is over, and those behind them move up', async () => {
    const rig = new Rig();
    const holder = await rig.lock('a');
    const turns: string[] = [];
    const impatient = takeTurn(rig, 'impatient', turns, 'a', 100);
    takeTurn(rig, 'patient', turns);
    await rig.clock.advance(200);
    expect(impatient.at).toBe(100);
    expect(impatient.reason).toBeInstanceOf(LockNotAcquiredError);
    await holder.release();
    await rig.clock.settle();
    expect(turns).toEqual(['patient']);
  });

  it('move up when the lock in front is lost', async () => {
    const rig = new Rig();
    await rig.lock('a', { ttl: 1_000, extend: false });
    const turns: string[] = [];
    const next = takeTurn(rig, 'next', turns);
    await rig.clock.advance(2_000);
    expect(turns).toEqual(['next']);
    expect(next.at).toBe(1_000 - 12);
  });

  it('move up when a lock that bypassed the queue is released', async () => {
    const rig = new Rig();
    const other = new Rig({}, rig);
    const theirs = await other.lock('a', { ttl: 30_000 });
    rig.fraction = 0.999;
    const turns: string[] = [];
    const patient = takeTurn(rig, 'patient', turns);
    await rig.clock.advance(3_000);
    await theirs.release();
    const hasty = await rig.lock('a', { wait: 0 });
    await rig.clock.advance(1_000);
    expect(turns).toEqual([]);
    await hasty.release();
    await rig.clock.settle();
    expect(patient.at).toBe(rig.clock.now);
  });

  it('for different resources do not wait for each other', async () => {
    const rig = new Rig();
    await rig.lock('a');
    const turns: string[] = [];
    takeTurn(rig, 'a', turns, 'a');
    takeTurn(rig, 'b', turns, 'b');
    await rig.clock.settle();
    expect(turns).toEqual(['b']);
  });

  it('for several resources cannot wait for each other in a circle', async () => {
    const rig = new Rig();
    const holder = await rig.lock(['a', 'b', 'c']);
    const turns: string[] = [];
    const pairs = [
      ['a', 'b'],
      ['b', 'a'],
      ['b', 'c'],
      ['c', 'a'],
      ['c', 'b', 'a'],
      ['a', 'c'],
    ];
    const all = pairs.map((pair) => takeTurn(rig, pair.join(), turns, pair));
    await holder.release();
    await rig.clock.advance(100);
    for (const { state } of all) expect(state).toBe('fulfilled');
    expect(turns).toEqual(pairs.map((pair) => pair.join()));
  });

  it('in two processes with resources in opposite order cannot wait for each other', async () => {
    const rig = new Rig({ masters: 4 });
    const other = new Rig({}, rig);
    const turns: string[] = [];
    const all = Array.from({ length: 20 }, (_, i) => [
      takeTurn(rig, `a${i}`, turns, ['a', 'b']),
      takeTurn(other, `b${i}`, turns, ['b', 'a']),
    ]).flat();
    rig.fraction = 0.3;
    await rig.clock.advance(60_000);
    for (const { state } of all) expect(state).toBe('fulfilled');
    expect(rig.clock.pendingTimers).toBe(0);
  });
});

describe('10,000 keys', () => {
  it('leave nothing behind', async () => {
    const rig = new Rig();
    const keys = Array.from({ length: 10_000 }, (_, i) => `order:${i}`);
    const locks = keys.map((key) => rig.acquire(key).then((lock) => lock.release()));
    const others = keys.map((key) => rig.acquire(key, { wait: 1 }).then((lock) => lock.release()));
    await Promise.all([...locks, ...others]);
    await rig.clock.settle();
    expect(rig.keys).toEqual([0, 0, 0]);
    expect(rig.clock.pendingTimers).toBe(0);
    expect(sizes(rig.redlock)).toEqual({});
  }, 60_000);
});

/** Sizes of all collections that an object refers to, except empty ones. */
function sizes(root: object, path = '', seen = new Set<unknown>()): Record<string, number> {
  if (seen.has(root)) return {};
  seen.add(root);
  const found: Record<string, number> = {};
  for (const [name, value] of Object.entries(root)) {
    if (['clock', 'settings', 'inner'].includes(name)) continue;
    if ((value instanceof Map || value instanceof Set) && value.size > 0) found[path + name] = value.size;
    else if (typeof value === 'object' && value !== null) Object.assign(found, sizes(value, `${path}${name}.`, seen));
  }
  return found;
}
