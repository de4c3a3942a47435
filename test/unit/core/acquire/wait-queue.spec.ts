import { beforeEach, describe, expect, it } from '@jest/globals';
import { HomeMasters } from '../../../../lib/core/acquire/home-masters.js';
import { LinkedList, ListMember } from '../../../../lib/core/acquire/linked-list.js';
import { WaitQueue } from '../../../../lib/core/acquire/process-queue.js';
import { Waiter } from '../../../../lib/core/acquire/waiter.js';
import { LockNotAcquiredError } from '../../../../lib/core/errors.js';
import { hash, mix } from '../../../../lib/core/keyspace.js';
import { CircuitBreakerMaster } from '../../../../lib/core/health/circuit-breaker-master.js';
import type { Lock } from '../../../../lib/core/lock.js';
import { ManualClock } from '../../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../../lib/memory/memory-master.js';
import { SystemClock } from '../../../../lib/runtime/system-clock.js';
import { resolveCall, resolveSettings } from '../../../../lib/core/settings/settings.js';
import { fc } from '../../../support/properties.js';
import { Rig } from '../../support/rig.js';
import { TestClock } from '../../support/test-clock.js';

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

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
    const call = resolveCall(resolveSettings({}), { wait: 1_000 });
    const [first, second] = [1, 2].map(() => new Waiter(clock, [], call)) as [Waiter, Waiter];
    const entry = queue.join(['a'], first);
    queue.join(['a'], second);
    return { clock, queue, first, second, entry };
  }

  it('goes to the first waiter, which is woken', async () => {
    const { queue, first } = waiting();
    expect(queue.notify('a')).toBe(true);
    expect(await first.pause()).toBe('next');
  });

  it('is passed on if there is no waiter for the resource', () => expect(waiting().queue.notify('b')).toBe(false));

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
    const first = await rig.lock('a');
    const turns: string[] = [];
    const names = Array.from({ length: 50 }, (_, i) => `${i}`);
    for (const name of names) takeTurn(rig, name, turns);
    await rig.clock.advance(10);
    expect(turns).toEqual([]);
    await first.release();
    await rig.clock.advance(0);
    for (let i = 0; i < 50; i++) await rig.clock.settle();
    expect([turns, rig.clock.now]).toEqual([names, 10]);
  });

  it('cause no traffic behind the holder', async () => {
    await rig.lock('a', { ttl: 30_000 });
    for (let i = 0; i < 100; i++) takeTurn(rig, `${i}`, [], 'a', 5_000);
    await rig.clock.advance(4_000);
    expect(rig.counts('acquire')).toEqual([1, 1, 1]);
  });

  it('cause no traffic behind the one that contends, even when they give up', async () => {
    const countWith = async (waiters: number): Promise<number> => {
      rig = new Rig();
      await rig.peer().lock('a', { ttl: 30_000 });
      takeTurn(rig, 'head', []);
      for (let i = 0; i < waiters; i++) takeTurn(rig, `${i}`, [], 'a', 500 + 10 * i);
      await rig.clock.advance(4_000);
      return rig.masters[0]!.requests('acquire').length;
    };
    expect(await countWith(100)).toBe(await countWith(0));
  });

  it('leave at once when their time is over, and those behind them move up', async () => {
    const holder = await rig.lock('a');
    const turns: string[] = [];
    const impatient = takeTurn(rig, 'impatient', turns, 'a', 100);
    takeTurn(rig, 'patient', turns);
    await rig.clock.advance(200);
    expect(impatient).toMatchObject({ at: 100, reason: expect.any(LockNotAcquiredError) });
    await rig.settle(holder.release());
    expect(turns).toEqual(['patient']);
  });

  it('move up when the lock in front is lost', async () => {
    await rig.lock('a', { ttl: 1_000, extend: false });
    const turns: string[] = [];
    const next = takeTurn(rig, 'next', turns);
    await rig.clock.advance(2_000);
    expect([turns, next.at]).toEqual([['next'], 1_000 - 12]);
  });

  it('move up when a lock that bypassed the queue is released', async () => {
    const other = rig.peer();
    const theirs = await other.lock('a', { ttl: 30_000 });
    rig.fraction = 0.999;
    const turns: string[] = [];
    const patient = takeTurn(rig, 'patient', turns);
    await rig.clock.advance(3_000);
    await theirs.release();
    const hasty = await rig.lock('a', { wait: 0 });
    await rig.clock.advance(1_000);
    expect(turns).toEqual([]);
    await rig.settle(hasty.release());
    expect(patient.at).toBe(rig.clock.now);
  });

  it('for different resources do not wait for each other', async () => {
    await rig.lock('a');
    const turns: string[] = [];
    takeTurn(rig, 'a', turns, 'a');
    takeTurn(rig, 'b', turns, 'b');
    await rig.clock.settle();
    expect(turns).toEqual(['b']);
  });

  it('for several resources cannot wait for each other in a circle', async () => {
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
    rig = new Rig({ masters: 4 });
    const other = rig.peer();
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

it('10,000 keys leave nothing behind', async () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `order:${i}`);
  const locks = keys.map((key) => rig.acquire(key).then((lock) => lock.release()));
  const others = keys.map((key) => rig.acquire(key, { wait: 1 }).then((lock) => lock.release()));
  await Promise.all([...locks, ...others]);
  await rig.clock.settle();
  expect([rig.keys, rig.clock.pendingTimers]).toEqual([[0, 0, 0], 0]);
  expect(sizes(rig.redlock)).toEqual({});
}, 60_000);

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

class Named extends ListMember<Named> {
  constructor(readonly name: string) {
    super();
  }
}

function namesOf({ members }: LinkedList<Named>): string[] {
  return members.map(({ name }) => name);
}

describe('A linked list', () => {
  it('keeps the order of its members, whichever of them leaves', () => {
    const list = new LinkedList<Named>();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => new Named(name)) as [Named, Named, Named];
    for (const member of [a, b, c]) list.add(member);
    expect([namesOf(list), list.first, list.last]).toEqual([['a', 'b', 'c'], a, c]);
    list.remove(b);
    list.remove(b);
    expect([namesOf(list), b.before, b.after]).toEqual([['a', 'c'], undefined, undefined]);
    list.remove(a);
    expect([list.first, list.last]).toEqual([c, c]);
    list.remove(c);
    list.remove(c);
    expect([namesOf(list), list.first, list.last, list.isEmpty]).toEqual([[], undefined, undefined, true]);
    list.add(b);
    expect(namesOf(list)).toEqual(['b']);
  });

  it('does what an array does', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(30))), (actions) => {
        const list = new LinkedList<Named>();
        const all: Named[] = [];
        let expected: Named[] = [];
        actions.forEach((leaving, i) => {
          if (leaving === null) {
            const member = new Named(`${i}`);
            all.push(member);
            expected.push(member);
            list.add(member);
            return;
          }
          const member = all[leaving];
          if (member) list.remove(member);
          expected = expected.filter((other) => other !== member);
        });
        expect(namesOf(list)).toEqual(expected.map(({ name }) => name));
        expect(list.isEmpty).toBe(expected.length === 0);
        expect([list.first, list.last]).toEqual([expected[0], expected.at(-1)]);
      }),
    );
  });
});

function homes(count: number) {
  return homesOf(Array.from({ length: count }, (_, i) => `m${i}`));
}

function homesOf(names: readonly string[]) {
  const clock = new ManualClock();
  const masters = names.map((name) => new MemoryMaster(clock, name));
  const watched = masters.map((master) => new CircuitBreakerMaster(master, new SystemClock(), 50, {}, () => undefined));
  return { clock, masters, watched, homeMasters: new HomeMasters(watched, clock) };
}

/** The number of keys of which each master is the home master, out of 5,000. */
function sharesOf(homeMasters: HomeMasters, masters: number): Map<string, number> {
  const shares = new Map<string, number>();
  for (let i = 0; i < 5_000; i++) {
    const name = homeMasters.of(`order:${i}`)?.name ?? 'none';
    shares.set(name, (shares.get(name) ?? 0) + 1);
  }
  expect(shares.size).toBe(masters);
  return shares;
}

// Protocol 5.3
describe('The home master of a key', () => {
  it('is the same for all processes', () => {
    const here = homes(5);
    const there = homes(5);
    for (let i = 0; i < 100; i++) {
      expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
    }
  });

  it('is the same master for processes that list the masters in another order', () => {
    const names = ['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379', '10.0.0.5:6379'];
    const here = homesOf(names);
    const there = homesOf(['10.0.0.4:6379', '10.0.0.1:6379', '10.0.0.5:6379', '10.0.0.3:6379', '10.0.0.2:6379']);
    for (let i = 0; i < 100; i++) {
      expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
    }
    for (const name of ['10.0.0.2:6379', '10.0.0.5:6379']) {
      for (const { masters } of [here, there]) masters.find((master) => master.name === name)?.takeDown();
      for (let i = 0; i < 100; i++) {
        expect(here.homeMasters.of(`key ${i}`)?.name).toBe(there.homeMasters.of(`key ${i}`)?.name);
      }
    }
  });

  it('differs between keys, so that the load is spread', () => {
    const { homeMasters } = homes(5);
    for (const share of sharesOf(homeMasters, 5).values()) expect(share).toBeGreaterThan(850);
  });

  it('moves to all remaining masters alike when a master is down', () => {
    const { homeMasters, masters } = homesOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    masters[1]?.takeDown();
    for (const share of sharesOf(homeMasters, 3).values()) expect(share).toBeGreaterThan(1_450);
  });

  it('stays where it is when a master is added, unless it moves to the new one', () => {
    const before = homesOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379']);
    const after = homesOf(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379', '10.0.0.4:6379']);
    for (let i = 0; i < 1_000; i++) {
      const name = after.homeMasters.of(`order:${i}`)?.name;
      expect([before.homeMasters.of(`order:${i}`)?.name, '10.0.0.4:6379']).toContain(name);
    }
  });

  it('is the next usable master while one is down, and the same as before when it is back', () => {
    const { homeMasters, masters } = homes(3);
    const before = homeMasters.of('key');
    const master = masters.find(({ name }) => name === before?.name);
    master?.takeDown();
    const meanwhile = homeMasters.of('key');
    expect(meanwhile).toBeDefined();
    expect(meanwhile).not.toBe(before);
    master?.bringUp();
    expect(homeMasters.of('key')).toBe(before);
  });

  it('does not exist when no master is usable', () => {
    const { homeMasters, masters } = homes(3);
    for (const master of masters) master.takeDown();
    expect(homeMasters.of('key')).toBeUndefined();
  });
});

describe('A crowd', () => {
  it('is remembered for a second', async () => {
    const { homeMasters, clock } = homes(3);
    homeMasters.noteContention(['a', 'b']);
    expect(homeMasters.areContended(['x', 'b'])).toBe(true);
    await clock.advance(999);
    expect(homeMasters.areContended(['a'])).toBe(true);
    await clock.advance(1);
    expect(homeMasters.areContended(['a'])).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is remembered from its last sign on', async () => {
    const { homeMasters, clock } = homes(3);
    homeMasters.noteContention(['a', 'b']);
    await clock.advance(900);
    homeMasters.noteContention(['a']);
    await clock.advance(900);
    expect([homeMasters.areContended(['a']), homeMasters.areContended(['b'])]).toEqual([true, false]);
  });
});

// Processes of different versions agree on the home master of a key and on the counters of its tokens.
// Protocol 5.3 and 9.1
describe('A hash', () => {
  it.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
  ])('of %j is that of FNV-1a', (text, expected) => expect(hash(text)).toBe(expected));

  it.each([
    [0, 0],
    [1, 0x514e28b7],
    [2, 0x30f4c306],
    [0xffffffff, 0x81f16f39],
  ])('of %i is mixed as MurmurHash3 does', (number, expected) => expect(mix(number)).toBe(expected));
});
