import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { Lock } from '../../lib/locks/lock.js';
import { type CountingContender, Crowd, Patience } from '../support/crowd.js';
import { eventually } from '../support/eventually.js';
import { type SharedMasters, sharedMasters } from './support/shared-masters.js';

const all = sharedMasters(5);
const masters = (count: number): SharedMasters => ({
  servers: all.servers.slice(0, count),
  urls: all.urls.slice(0, count),
});

const WAIT = { wait: '60s' } as const;
/** A pause of the machine is not an outage: what is counted are the requests while all masters answer. */
const PATIENT = { masterTimeout: '2s' } as const;

describe.each([1, 3, 5])('A hand-off between processes, with %i masters', (count) => {
  it('causes one request, by the process whose turn it is, and none by others', async () => {
    await using crowd = await Crowd.of(4, masters(count), {}, new Patience());
    const [holder, ...others] = crowd.contenders as [CountingContender, ...CountingContender[]];
    let lock = await crowd.lockOnAll(holder, 'k', '30s');
    const turns: Promise<Lock>[] = [];
    for (const [i, other] of others.entries()) {
      turns.push(other.acquire('k', '30s', WAIT));
      await crowd.untilQueued('k', i + 1);
    }
    const home = await crowd.indexOfHomeMaster('k');
    for (const [i, turn] of turns.entries()) {
      crowd.reset();
      await lock.release();
      lock = await turn;
      const asked = crowd.contenders.map((contender) => contender.acquiresAt(home));
      const expected = crowd.contenders.map((contender) => (contender === others[i] ? 1 : 0));
      expect(asked).toEqual(expected);
      // A waiter that polls sends as many requests, only later. The number of notifications shows the difference.
      expect(crowd.contenders.map(({ calls }) => calls)).toEqual(expected);
    }
    await lock.release();
    await eventually(async () => (await crowd.keys()) === 0);
  });
});

describe('Requests per hand-off', () => {
  it.each([2, 8, 16])('among %i processes are at most 1.5 times those of an uncontended lock', async (processes) => {
    await using crowd = await Crowd.of(processes, masters(5), PATIENT);
    await Promise.all(crowd.contenders.map((contender) => takeTurns(contender, 2)));
    crowd.reset();
    const times = Math.ceil(160 / processes);
    await Promise.all(crowd.contenders.map((contender) => takeTurns(contender, times)));
    const perTurn = crowd.requests / (times * processes);
    expect(perTurn).toBeLessThanOrEqual(15);
  });

  async function takeTurns(contender: CountingContender, times: number, section = 1): Promise<void> {
    for (let i = 0; i < times; i++) {
      const lock = await contender.acquire('k', '30s', WAIT);
      await sleep(section);
      await lock.release();
    }
  }
});

it('Without contention a lock takes two requests per master, and no subscriber', async () => {
  await using crowd = await Crowd.of(1, masters(5), PATIENT);
  const [contender] = crowd.contenders as [CountingContender];
  for (let i = 1; i <= 20; i++) {
    await (await contender.acquire(i % 2 ? `k${i}` : ['a', `k${i}`], '30s', WAIT)).release();
    expect(contender.requests).toBe(10 * i);
  }
  expect(await crowd.subscribers()).toEqual([0, 0, 0, 0, 0]);
});

describe('A process that waits', () => {
  // Protocol 5.7
  it('has one subscriber per master, however many keys it waits for, until it is closed', async () => {
    await using crowd = await Crowd.of(2, masters(3));
    const [holder, waiting] = crowd.contenders as [CountingContender, CountingContender];
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
    const locks = await Promise.all(keys.map((key) => crowd.lockOnAll(holder, key, '30s')));
    expect(await crowd.subscribers()).toEqual([0, 0, 0]);
    const turns = keys.map((key) => waiting.acquire(key, '30s', WAIT));
    await Promise.all(keys.map((key) => crowd.untilQueued(key, 1)));
    expect(await crowd.subscribers()).toEqual([1, 1, 1]);
    await Promise.all(locks.map((lock) => lock.release()));
    await Promise.all(turns.map(async (turn) => (await turn).release()));
    expect(await crowd.subscribers()).toEqual([1, 1, 1]);
    await waiting.close();
    await eventually(async () => (await crowd.subscribers()).every((count) => count === 0));
    expect(await crowd.keys()).toBe(0);
  });
});
