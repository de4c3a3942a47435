import { describe, expect, it } from '@jest/globals';
import type { Lock } from '../../../lib/locks/lock.js';
import { acquiring } from '../../support/ask.js';
import {
  after,
  held,
  obeys,
  obeysAfter,
  only,
  refused,
  says,
  type ScriptedMaster,
  unreachable,
} from '../support/scripted-master.js';
import { Rig } from '../support/rig.js';

/** Several processes on the same masters, beside one that holds resource `a`. */
async function crowd(processes: number, options: { masters?: number } = {}) {
  const rig = new Rig(options);
  const others = Array.from({ length: processes }, () => rig.peer());
  const holder = await rig.lock('a', { ttl: 20_000 });
  const turns: string[] = [];
  const locks: Lock[] = [];
  const wait = async (i: number, resource: string | string[] = 'a'): Promise<void> => {
    const name = `${i}`;
    void others[i]!.acquire(resource, { wait: 60_000, ttl: 20_000 }).then((lock) => {
      turns.push(name);
      locks.push(lock);
    });
    await rig.clock.advance(1);
  };
  return { rig, others, holder, turns, locks, wait, forget: () => rig.forget(), asked: () => rig.counts('acquire') };
}

/** A crashed holder: its keys live on for 20 s, because no process releases them. */
async function crash({ holder, rig }: Awaited<ReturnType<typeof crowd>>): Promise<void> {
  await holder.release();
  const request = acquiring(['lock:a'], 'crashed', { ttl: 20_000 });
  for (const { memory } of rig.masters) memory.ask(request, () => undefined);
  await rig.clock.settle();
}

/** The master on which a process waits. */
function gateOf(rig: Rig) {
  return rig.masters.find(({ memory }) => memory.queued > 0)!;
}

describe('A hand-off between processes', () => {
  it.each([1, 3, 5])('takes no time and one request per master, with %i masters', async (masters) => {
    const { rig, holder, turns, locks, wait, forget, asked } = await crowd(4, { masters });
    for (const i of [0, 1, 2, 3]) await wait(i);
    let lock = holder;
    for (const i of [0, 1, 2, 3]) {
      forget();
      const { now } = rig.clock;
      await rig.settle(lock.release());
      expect(rig.clock.now).toBe(now);
      expect(turns.at(-1)).toBe(`${i}`);
      expect(asked()).toEqual(asked().map(() => 1));
      lock = locks[i]!;
    }
    await rig.settle(lock.release());
    expect([rig.keys, rig.clock.pendingTimers]).toEqual([rig.keys.map(() => 0), 0]);
  });

  it('goes to the call that has waited longest: a later call does not inherit an aborted one’s place', async () => {
    const { rig, others, holder, turns, wait } = await crowd(2);
    const aborter = new AbortController();
    const impatient = await rig.outcomeAfter(10, others[0]!.acquire('a', { wait: 60_000, signal: aborter.signal }));
    await wait(1);
    await wait(0);
    aborter.abort();
    await rig.clock.advance(1_000);
    expect(impatient.state).toBe('rejected');
    await rig.settle(holder.release());
    expect(turns).toEqual(['1']);
  });

  it('from a crashed holder takes place when its keys expire, to one process, without a herd', async () => {
    const stage = await crowd(8);
    const { rig, turns, wait, forget, asked } = stage;
    await crash(stage);
    for (let i = 0; i < 8; i++) await wait(i);
    await rig.clock.advance(19_980 - rig.clock.now);
    expect(turns).toEqual([]);
    forget();
    await rig.clock.advance(20_003 - rig.clock.now);
    await rig.clock.settle();
    expect(turns).toHaveLength(1);
    const total = asked().reduce((sum, count) => sum + count, 0);
    // Each process sends one request to the home master, and the new holder two more; some may also have just polled.
    expect(total).toBeLessThanOrEqual(8 + 2 + 8);
  });
});

describe('A process that is woken', () => {
  /** The release of the old holder arrives after the request of the next one. */
  const releasesLate = only('release', after(3, obeys), after(2, obeys));
  /** A waiter at the home master, and the other masters. */
  async function woken() {
    const stage = await crowd(1);
    await stage.wait(0);
    const home = gateOf(stage.rig);
    stage.forget();
    return { ...stage, home, others: stage.rig.masters.filter((master) => master !== home) };
  }

  // Protocol 7.1
  it('finds the other masters free, because the home master is released last', async () => {
    const { rig, home, holder } = await woken();
    const order: string[] = [];
    for (const master of rig.masters) {
      master.behaviour = (request, reply) => {
        if (request.op === 'release') order.push(master.name);
        obeys(request, reply, master);
      };
    }
    await holder.release();
    expect(order).toHaveLength(3);
    expect(order.at(-1)).toBe(home.name);
  });

  it('sends its requests to all masters at once, and needs only a quorum of them', async () => {
    const { rig, home, holder, turns, asked } = await woken();
    home.behaviour = only('acquire', obeysAfter(5));
    await rig.settle(holder.release());
    expect(asked()).toEqual([1, 1, 1]);
    expect(turns).toEqual(['0']);
    await rig.clock.advance(5);
    expect(home.memory.queued).toBe(0);
  });

  it('tries again, without giving anything back, if the release arrives late, and its validity counts from the first request', async () => {
    const { rig, others, holder, turns, locks, asked } = await woken();
    for (const master of others) master.behaviour = releasesLate;
    const { now } = rig.clock;
    void holder.release();
    await rig.clock.advance(4);
    expect(turns).toEqual(['0']);
    expect([rig.clock.now - now, locks[0]!.remaining()]).toEqual([4, 20_000 - 4 - 202]);
    expect([...asked()].sort()).toEqual([1, 2, 2]);
    // Only the releases of the old holder.
    expect(rig.counts('release')).toEqual([1, 1, 1]);
  });

  it('takes no refusal of another master for one before the home master has answered', async () => {
    const { rig, home, others, holder, turns } = await woken();
    home.behaviour = only('acquire', obeysAfter(5));
    for (const master of others) master.behaviour = releasesLate;
    void holder.release();
    await rig.clock.advance(8);
    expect([turns, rig.counts('release')]).toEqual([['0'], [1, 1, 1]]);
  });

  // Protocol 5.6
  it('tries again at most twice, then gives everything back and waits its turn', async () => {
    const { rig, others, holder, turns } = await woken();
    for (const master of others) master.behaviour = only('release', obeysAfter(100));
    void holder.release();
    await rig.clock.settle();
    for (const { asked } of others) {
      const ops = asked.map(({ request }) => request.op);
      expect(ops).toEqual(['release', 'acquire', 'acquire', 'acquire', 'release']);
    }
    await rig.clock.advance(1_000);
    expect(turns).toEqual(['0']);
    expect(rig.keys).toEqual([1, 1, 1]);
  });

  it('does not try again, and keeps nothing, if the home master refuses', async () => {
    const { rig, home, others, holder, turns, asked } = await woken();
    home.behaviour = only('acquire', says(held));
    others[0]!.behaviour = only('acquire', says(held));
    await rig.settle(holder.release());
    expect(turns).toEqual([]);
    expect(asked()).toEqual([1, 1, 1]);
    expect(others.map(({ size }) => size)).toEqual([0, 0]);
  });

  it('does not try again after it has given up', async () => {
    const stage = await crowd(1);
    const { rig, holder, others } = stage;
    const aborter = new AbortController();
    const lock = await rig.outcomeOf(others[0]!.acquire('a', { wait: 60_000, signal: aborter.signal }));
    const home = gateOf(rig);
    const rest = rig.masters.filter((master) => master !== home);
    stage.forget();
    home.behaviour = obeysAfter(10);
    for (const master of rest) master.behaviour = only('acquire', says(held));
    void holder.release();
    await rig.clock.advance(10);
    aborter.abort();
    await rig.clock.advance(1_000);
    expect(lock.state).toBe('rejected');
    for (const { asked } of rest)
      expect(asked.map(({ request }) => request.op)).toEqual(['release', 'acquire', 'release']);
    expect(rig.keys).toEqual([0, 0, 0]);
  });
});

describe('A home master', () => {
  // One poll every 250 to 750 ms, with one request to the home master and one to all masters.
  it.each<[string, (home: ScriptedMaster) => void, number]>([
    [
      'that refuses causes no hot loop, and no wait beyond the next poll',
      (home) => (home.behaviour = says(refused)),
      40,
    ],
    [
      'that is down, unnoticed causes no hot loop, and no wait beyond the next poll',
      (home) => (home.behaviour = says(unreachable)),
      40,
    ],
    ['that has lost its keys causes no hot loop', ({ memory }) => memory.flush(), 50],
  ])('%s', async (_, spoil, polls) => {
    const { rig, holder, turns, wait, forget, asked } = await crowd(1);
    await wait(0);
    spoil(gateOf(rig));
    forget();
    await rig.clock.advance(10_000);
    expect(Math.max(...asked())).toBeLessThanOrEqual(2 * polls);
    await holder.release();
    await rig.clock.advance(750);
    expect(turns).toEqual(['0']);
  });

  it('that has lost its keys does not hide when the holder’s other keys expire', async () => {
    const stage = await crowd(1);
    const { rig, turns, wait } = stage;
    await crash(stage);
    await wait(0);
    gateOf(rig).memory.flush();
    await rig.clock.advance(19_990 - rig.clock.now);
    expect(turns).toEqual([]);
    await rig.clock.advance(20_100 - rig.clock.now);
    expect(turns).toEqual(['0']);
  });

  it('that comes back is where all waiters meet again', async () => {
    const { rig, holder, turns, wait } = await crowd(2);
    await wait(0);
    const home = gateOf(rig);
    home.behaviour = says(unreachable);
    home.trouble = unreachable;
    await wait(1);
    await rig.clock.advance(1_000);
    home.behaviour = obeys;
    home.becomeReady();
    await rig.clock.advance(1_500);
    await rig.settle(holder.release());
    expect(turns).toEqual(['0']);
  });
});
