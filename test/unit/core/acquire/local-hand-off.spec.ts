import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../../lib/core/lock.js';
import { type Followed, Rig } from '../../support/rig.js';
import { after, hangs, only, tellsAfter } from '../../support/scripted-master.js';

const TTL = 1_000;
const OPTIONS = { ttl: TTL, wait: 60_000 };

let rig: Rig;

beforeEach(() => void (rig = new Rig()));

/** Number of requests that acquired or released keys, at each master. */
function requests(): number[] {
  return rig.masters.map((master) => [...master.times('acquire'), ...master.times('release')].length);
}

/** Requests in the queue of the process, in their order. */
function waiters(count: number, options: object = {}): Followed<Lock>[] {
  return Array.from({ length: count }, () => rig.follow(rig.acquire('a', { ...OPTIONS, ...options })));
}

/** Releases one lock after the other, and returns how many of the waiters were granted without a request to a master. */
async function countPassed(first: Lock, followers: readonly Followed<Lock>[], section = 0): Promise<number> {
  let passed = 0;
  let holder = first;
  for (const follower of followers) {
    await rig.clock.advance(section);
    const before = requests();
    await rig.settle(holder.release());
    expect(follower.state).toBe('fulfilled');
    holder = follower.value!;
    if (String(requests()) === String(before)) passed++;
  }
  await holder.release();
  return passed;
}

// Protocol 5.2
describe('A lock with waiters in its process', () => {
  it('passes to the next one without a request to the masters, and ends for its previous holder', async () => {
    const first = await rig.lock('a', OPTIONS);
    const [second, third] = waiters(2);
    await rig.clock.advance(3);
    const before = requests();
    await rig.settle(first.release());
    expect(requests()).toEqual(before);
    expect([first.isHeld, first.loss, first.remaining()]).toEqual([false, undefined, 0]);
    expect([second!.state, third!.state]).toEqual(['fulfilled', 'pending']);
    expect(second!.value!.isHeld).toBe(true);
  });

  it('has the validity of its round for each holder', async () => {
    const first = await rig.lock('a', OPTIONS);
    const [second] = waiters(1);
    await rig.clock.advance(9);
    const remaining = first.remaining();
    await rig.settle(first.release());
    expect(second!.value!.remaining()).toBe(remaining);
    await rig.clock.advance(TTL);
    expect(rig.losses.map(({ cause }) => cause)).toEqual(['expired']);
    expect(second!.value!.loss?.cause).toBe('expired');
  });

  it('is extended for its holder of the moment, as if that had acquired it', async () => {
    const first = await rig.lock('a', { ...OPTIONS, extend: true });
    const [second] = waiters(1, { extend: true });
    await first.release();
    await rig.clock.advance(10 * TTL);
    expect(second!.value!.isHeld).toBe(true);
    expect(rig.masters[0]!.times('extend').length).toBeGreaterThan(20);
    await rig.settle(second!.value!.release());
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('counts maxHold for each holder on its own', async () => {
    const first = await rig.lock('a', { ...OPTIONS, extend: true, maxHold: 2 * TTL });
    const [second] = waiters(1, { extend: true, maxHold: TTL });
    await rig.clock.advance(9);
    await first.release();
    await rig.clock.advance(TTL - 2);
    expect(second!.value!.isHeld).toBe(true);
    await rig.clock.advance(3);
    expect(second!.value!.loss?.cause).toBe('max-hold');
  });

  it('waits from the end of that turn on, for other processes', async () => {
    const others = [rig.peer(), rig.peer()];
    const first = await rig.lock('a', OPTIONS);
    const [second, third] = waiters(2);
    await rig.clock.advance(9);
    const [theirs, last] = others.map((other) => other.follow(other.acquire('a', OPTIONS)));
    await first.release();
    await rig.clock.advance(2);
    await rig.settle(second!.value!.release());
    expect([theirs!.state, last!.state, third!.state]).toEqual(['fulfilled', 'pending', 'pending']);
    await rig.settle(theirs!.value!.release());
    expect([last!.state, third!.state]).toEqual(['fulfilled', 'pending']);
    await rig.settle(last!.value!.release());
    expect(third!.state).toBe('fulfilled');
  });

  it.each([
    ['another ttl', { ttl: TTL + 1 }],
    ['a minHold', { minHold: 100 }],
    ['a shared lock', { mode: 'shared' }],
    ['several resources', {}, ['a', 'b']],
  ] as const)('does not pass to a request for %s', async (_, options, resources: string | readonly string[] = 'a') => {
    const first = await rig.lock('a', OPTIONS);
    expect(await countPassed(first, [rig.follow(rig.acquire(resources, { ...OPTIONS, ...options }))])).toBe(0);
  });

  it.each<[string, number, number, number, { ttl?: number; uses?: (lock: Lock) => unknown }]>([
    ['after five sections, so that other processes get their turn', 11, 0, 4 + 4 + 1, {}],
    // Acquired at 0, passed on at 4 and 8, released at 12; passed on at 16 and 20, released at 24.
    ['once the process has had it for ten milliseconds', 6, 4, 4, {}],
    ['if less than four fifths of its ttl are left', 2, 5, 0, { ttl: 20 }],
    ['by a holder that has used its state', 1, 0, 0, { uses: ({ state }) => state.set(1) }],
  ])('is released %s', async (_, count, section, passed, { ttl = TTL, uses }) => {
    const first = await rig.lock('a', { ttl });
    await uses?.(first);
    expect(await countPassed(first, waiters(count, { ttl }), section)).toBe(passed);
    expect(await rig.lock('a', { wait: 0 })).toMatchObject({ isHeld: true });
  });

  it.each([
    ['with a minHold', { minHold: 5 }],
    ['that is shared', { mode: 'shared' }],
    ['of several resources', {}, ['a', 'b']],
  ] as const)('does not pass on one %s', async (_, options, resources: string | readonly string[] = 'a') => {
    const first = await rig.lock(resources, { ...OPTIONS, ...options });
    const [second] = waiters(1);
    await rig.clock.settle();
    const before = rig.masters.map((master) => master.times('release').length);
    await first.release();
    expect(rig.masters.map((master) => master.times('release').length)).toEqual(before.map((count) => count + 1));
    await rig.clock.advance(1_000);
    expect(second!.state).toBe('fulfilled');
  });

  it('passes on a permit with its slot, to one waiter each', async () => {
    const permits = { ...OPTIONS, permits: 3 };
    const holders = [await rig.lock('a', permits), await rig.lock('a', permits), await rig.lock('a', permits)];
    const [fourth, fifth, sixth] = waiters(3, { permits: 3 });
    const before = requests();
    await Promise.all([holders[2]!.release(), holders[0]!.release()]);
    await rig.clock.settle();
    expect(requests()).toEqual(before);
    expect([fourth!.value!.slot, fifth!.value!.slot]).toEqual([holders[2]!.slot, holders[0]!.slot]);
    expect(sixth!.state).toBe('pending');
    await rig.settle(fourth!.value!.release());
    expect(sixth!.value!.slot).toBe(holders[2]!.slot);
    await Promise.all([holders[1]!.release(), fifth!.value!.release(), sixth!.value!.release()]);
    await rig.clock.settle();
    expect([rig.keys, rig.redlock['permitBook']['usages'].size]).toEqual([[0, 0, 0], 0]);
  });

  it('does not pass on a permit that does not exist for the next one', async () => {
    const holders = await Promise.all([0, 1, 2].map(() => rig.lock('a', { ...OPTIONS, permits: 3 })));
    const last = holders.find(({ slot }) => slot === 2)!;
    const waiter = await rig.outcomeOf(rig.acquire('a', { ...OPTIONS, permits: 2 }));
    const before = rig.masters.map((master) => master.times('release').length);
    await last.release();
    expect(rig.masters.map((master) => master.times('release').length)).toEqual(before.map((count) => count + 1));
    expect(waiter.state).toBe('pending');
  });

  it('frees a permit that was passed on to a waiter that is aborted at the same moment', async () => {
    const first = await rig.lock('a', { ...OPTIONS, permits: 1 });
    const aborted = new AbortController();
    const [second] = waiters(1, { permits: 1, signal: aborted.signal });
    void first.release();
    aborted.abort(new Error('not wanted any more'));
    await rig.clock.settle();
    expect([second!.state, rig.keys, rig.redlock['permitBook']['usages'].size]).toEqual(['rejected', [0, 0, 0], 0]);
  });

  it('gives every holder that asks for one a fencing token of its own', async () => {
    const first = await rig.lock('a', OPTIONS);
    const [second, third] = waiters(2);
    await rig.settle(first.release());
    const token = await second!.value!.fencingToken();
    await rig.settle(second!.value!.release());
    expect(await third!.value!.fencingToken()).toBeGreaterThan(token);
  });

  it('is released while an extension is under way', async () => {
    const first = await rig.lock('a', OPTIONS);
    rig.scriptAll(only('extend', hangs));
    const extending = rig.follow(first.extend());
    expect(await countPassed(first, waiters(1))).toBe(0);
    await rig.clock.advance(TTL);
    expect(extending.reason).toMatchObject({ cause: 'released' });
  });

  it('is released if the next one is aborted at the same moment, and then goes to the one behind it', async () => {
    const first = await rig.lock('a', OPTIONS);
    const aborted = new AbortController();
    const [second] = waiters(1, { signal: aborted.signal });
    const [third] = waiters(1);
    void first.release();
    aborted.abort(new Error('not wanted any more'));
    await rig.clock.settle();
    expect([second!.reason, third!.state]).toEqual([new Error('not wanted any more'), 'fulfilled']);
    await rig.settle(third!.value!.release());
    expect(rig.keys).toEqual([0, 0, 0]);
  });

  it('is released when the service has stopped', async () => {
    const first = await rig.lock('a', OPTIONS);
    const [second] = waiters(1);
    rig.redlock.stop();
    await rig.settle(first.release());
    expect([second!.state, rig.keys]).toEqual(['rejected', [0, 0, 0]]);
  });

  it('is not passed on to a waiter whose turn has not come, because it knows fewer permits', async () => {
    const three = { ...OPTIONS, permits: 3, extend: true };
    const holders = await Promise.all([0, 1, 2].map(() => rig.lock('a', three)));
    const [zero, one] = [0, 1].map((slot) => holders.find((holder) => holder.slot === slot)!);
    const [waiter] = waiters(1, { permits: 2, extend: true });
    await rig.clock.settle();
    await zero!.release();
    await rig.clock.advance(2 * TTL);
    expect([waiter!.state, rig.keys]).toEqual(['pending', [2, 2, 2]]);
    await rig.settle(one!.release());
    expect([waiter!.value!.isHeld, waiter!.value!.slot]).toEqual([true, 1]);
  });

  it('is shortened with all others if a loss because of that releases it', async () => {
    const lost = await rig.lock('b', { ttl: 300 });
    await rig.clock.advance(292);
    const first = await rig.lock('a', OPTIONS);
    const [second] = waiters(1);
    const before = first.remaining();
    lost.signal.addEventListener('abort', () => void first.release());
    rig.redlock.noteStandstill(5);
    await rig.clock.settle();
    expect(second!.value!.remaining()).toBe(before - 5);
  });

  it('ends the turn of its process if the waiter that was to take it is aborted', async () => {
    const others = [rig.peer(), rig.peer()];
    const first = await rig.lock('a', OPTIONS);
    const aborted = new AbortController();
    const [second] = waiters(1);
    const [third] = waiters(1, { signal: aborted.signal });
    const [fourth] = waiters(1);
    await rig.clock.advance(5);
    const [theirs, last] = others.map((other) => other.follow(other.acquire('a', OPTIONS)));
    await rig.settle(first.release());
    void second!.value!.release();
    aborted.abort(new Error('not wanted any more'));
    await rig.clock.settle();
    expect([third!.state, theirs!.state]).toEqual(['rejected', 'fulfilled']);
    await rig.settle(theirs!.value!.release());
    expect([last!.state, fourth!.state]).toEqual(['fulfilled', 'pending']);
  });

  it('is over for an observer of its end, and is passed on once if that releases it again', async () => {
    const seen: boolean[] = [];
    const held: Lock[] = [];
    const ended = (): void => {
      seen.push(held[0]!.isHeld);
      void held[0]!.release();
    };
    rig = new Rig({ observer: { acquiring: () => ({ ended }) } });
    held.push(await rig.lock('a', OPTIONS));
    const [second, third] = waiters(2);
    await rig.settle(held[0]!.release());
    expect(seen).toEqual([false]);
    expect([second!.value!.isHeld, third!.state]).toEqual([true, 'pending']);
  });
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
