import { beforeEach, describe, expect, it } from '@jest/globals';
import { HomeMasters } from '../../../lib/waiting/home-masters.js';
import { LinkedList, ListMember } from '../../../lib/redlock/linked-list.js';
import { WaitQueue } from '../../../lib/waiting/process-queue.js';
import { Waiter } from '../../../lib/waiting/waiter.js';
import { LockNotAcquiredError } from '../../../lib/waiting/lock-not-acquired.error.js';
import { hash, mix } from '../../../lib/settings/keyspace.js';
import { CircuitBreakerMaster } from '../../../lib/masters/circuit-breaker-master.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { MemoryMaster } from '../../../lib/memory/memory-master.js';
import { SystemClock } from '../../../lib/runtime/system-clock.js';
import { resolveCall, resolveSettings } from '../../../lib/settings/settings.js';
import { Rig } from '../support/rig.js';
import { after, tellsAfter } from '../support/scripted-master.js';
import { TestClock } from '../support/test-clock.js';

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

  it('are told of the holder in their process, not of another one that was there before', async () => {
    const earlier = await rig.peer({ instance: 'earlier' }).lock('a', { ttl: 2_000 });
    const first = rig.follow(rig.acquire('a', { wait: 10_000, ttl: 60_000 }));
    await rig.clock.advance(10);
    await rig.settle(earlier.release());
    expect(first.state).toBe('fulfilled');
    const second = await rig.outcomeAfter(1_000, rig.acquire('a', { wait: 500 }));
    const { holder, message } = second.reason as LockNotAcquiredError;
    expect([holder?.instance === 'earlier', message]).toEqual([false, expect.stringContaining('(this process)')]);
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
});

it.each(['its wait has ended', 'it has become the holder'])(
  'The turn of this process, of which a master notifies it, is passed on by the first waiter if %s',
  (what) => {
    const call = resolveCall(resolveSettings({}), { wait: 1_000 });
    const waiters = [1, 2].map(() => new Waiter({ clock: new TestClock(), observer: {}, resources: [], call }));
    const queue = new WaitQueue();
    const [entry] = waiters.map((waiter) => queue.join(['a'], waiter));
    expect([queue.notify('a', 'm1'), queue.notify('b', 'm1')]).toEqual([true, false]);
    if (what === 'its wait has ended') waiters[0]!.end();
    else entry!.becomeHolder();
    expect(queue.notify('a', 'm1')).toBe(false);
    entry!.leave();
    expect(queue.notify('a', 'm1')).toBe(true);
  },
);

class Member extends ListMember<Member> {}

it('A member of a list may leave it twice, and keeps no neighbours from being freed', () => {
  const list = new LinkedList<Member>();
  const members = [1, 2, 3].map(() => new Member());
  for (const member of members) list.add(member);
  for (const left of [1, 0, 2, 1]) {
    list.remove(members[left]!);
    list.remove(members[left]!);
    expect([members[left]!.before, members[left]!.after]).toEqual([undefined, undefined]);
  }
  expect([list.isEmpty, list.first, list.last]).toEqual([true, undefined, undefined]);
});

const NAMES = [1, 2, 3, 4, 5].map((i) => `10.0.0.${i}:6379`);

function homesOf(names: readonly string[]) {
  const clock = new ManualClock();
  const masters = names.map((name) => new MemoryMaster(clock, name));
  const watched = masters.map((master) => new CircuitBreakerMaster(master, new SystemClock(), 50, {}, () => undefined));
  return { clock, masters, watched, homeMasters: new HomeMasters(watched, clock) };
}

// Protocol 5.3
describe('The home master of a key', () => {
  it('is the same for processes that reach the servers at other addresses', () => {
    const sites = ['here', 'there'].map((site) => {
      const { masters, watched, homeMasters } = homesOf(NAMES.map((_, index) => `${site}:${(index * 7) % 5}`));
      masters.forEach((master, index) => {
        master.identity = () => ({ run: `run ${index}` });
        master.bringUp();
      });
      return { watched, homeMasters };
    });
    for (let i = 0; i < 100; i++) {
      const [here, there] = sites.map(({ watched, homeMasters }) => watched.indexOf(homeMasters.of(`key ${i}`)!));
      expect(here).toBe(there);
    }
  });

  it.each([
    ['differs between keys, so that the load is spread', undefined, 5, 850],
    ['moves to all remaining masters alike when a master is down', 1, 4, 1_062],
  ])('%s', (_, down, masters, least) => {
    const { homeMasters, masters: all } = homesOf(NAMES);
    if (down !== undefined) all[down]?.takeDown();
    const shares = new Map<string | undefined, number>();
    for (let i = 0; i < 5_000; i++) {
      const name = homeMasters.of(`order:${i}`)?.name;
      shares.set(name, (shares.get(name) ?? 0) + 1);
    }
    expect(shares.size).toBe(masters);
    for (const share of shares.values()) expect(share).toBeGreaterThan(least);
  });

  it('stays where it is when a master is added, unless it moves to the new one', () => {
    const [before, after] = [homesOf(NAMES.slice(0, 4)), homesOf(NAMES)];
    for (let i = 0; i < 1_000; i++) {
      const name = after.homeMasters.of(`order:${i}`)?.name;
      expect([before.homeMasters.of(`order:${i}`)?.name, NAMES[4]]).toContain(name);
    }
  });

  it('is the next usable master while one is down, if there is one, and the same as before when it is back', () => {
    const { homeMasters, masters } = homesOf(NAMES.slice(2));
    const before = homeMasters.of('key');
    const master = masters.find(({ name }) => name === before?.name);
    master?.takeDown();
    expect([before, undefined]).not.toContain(homeMasters.of('key'));
    for (const other of masters) other.takeDown();
    expect(homeMasters.of('key')).toBeUndefined();
    master?.bringUp();
    expect(homeMasters.of('key')).toBe(before);
  });
});

it('A crowd is remembered for a second after its last sign', async () => {
  const { homeMasters, clock } = homesOf(NAMES);
  const contended = (): boolean[] => ['a', 'b', 'x'].map((key) => homeMasters.areContended([key]));
  homeMasters.noteContention(['a', 'b']);
  expect(homeMasters.areContended(['x', 'b'])).toBe(true);
  await clock.advance(999);
  expect(contended()).toEqual([true, true, false]);
  homeMasters.noteContention(['a']);
  await clock.advance(1);
  expect(contended()).toEqual([true, false, false]);
  await clock.advance(999);
  expect(contended()).toEqual([false, false, false]);
  expect(clock.pendingTimers).toBe(0);
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

it.each([[[900]], [[1_100]], [[1, 1, 1, 1, 1_100]]])(
  'A process whose waiters always want the lock again lets another one in between sections of %p ms',
  async (sections) => {
    const other = rig.peer();
    rig.scriptAll(after(1, tellsAfter(1)));
    let count = 0;
    const work = async (): Promise<void> => {
      while (count < 100) {
        const lock = await rig.acquire('a', { ttl: 10_000, wait: 600_000 });
        await new Promise<void>((resolve) => void rig.clock.schedule(sections[count++ % sections.length]!, resolve));
        await lock.release();
      }
    };
    for (let worker = 0; worker < 3; worker++) void work();
    await rig.clock.advance(50);
    const theirs = other.follow(other.acquire('a', { ttl: 10_000, wait: 5_000 }));
    await rig.clock.advance(5_000);
    expect(theirs.state).toBe('fulfilled');
  },
);
