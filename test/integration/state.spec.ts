import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { allVote } from '../support/guarded.js';
import { sharedMasters } from './support/shared-masters.js';

const TTL = 1_000;
// Speed does not matter here. A machine that is busy with other tests must not cause lost votes.
const OPTIONS = { ttl: TTL, maxTtl: TTL, masterTimeout: 250, restartGuard: true };

const masters = sharedMasters(3);
let contender: Contender;

beforeEach(async () => {
  contender = await Contender.on(masters.urls, OPTIONS);
  await allVote(contender);
});
afterEach(() => contender.close());

/** A read or a write can fail on a busy machine, as an outage of masters. Another call may succeed. */
async function persistently<T>(operation: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await operation();
    } catch (error) {
      if (attempt === 5 || (error as { code?: string }).code !== 'QUORUM_UNAVAILABLE') throw error;
    }
  }
}

async function get(read = persistently<unknown>): Promise<unknown> {
  await using lock = await contender.acquire('job', TTL, { extend: true, wait: 20_000 });
  return await read(() => lock.state.get());
}

const once = (operation: () => Promise<unknown>): Promise<unknown> => operation();

async function set(value: unknown): Promise<void> {
  await using lock = await contender.acquire('job', TTL, { extend: true, wait: 20_000 });
  await persistently(() => lock.state.set(value));
}

/** Restarts masters without their data. Resolves when all vote again. */
async function lose(...numbers: number[]): Promise<void> {
  const servers = numbers.map((number) => masters.servers[number - 1]!);
  await Promise.all(servers.map((server) => server.kill()));
  await Promise.all(servers.map((server) => server.restart()));
  // The connections notice the restart, and the votes of the masters stop counting.
  await eventually(() => contender.redlock.masters.status().masters.some(({ state }) => state !== 'voting'));
  await allVote(contender);
}

describe('The state of a lock on three guarded masters', () => {
  // Protocol 10.2, 10.3 and 10.6
  it('survives the loss of each master in turn, if it is read in between', async () => {
    expect(await get()).toBeUndefined();
    await set({ page: 1 });
    for (const number of [1, 2, 3, 1]) {
      await lose(number);
      expect(await get()).toEqual({ page: 1 });
    }
    await set({ page: 2 });
    expect(await get()).toEqual({ page: 2 });
  });

  // Protocol 10.3 and 10.6
  it('is the newest value that is left after two masters have lost it, if all answer, who get it again', async () => {
    await set('old');
    await lose(1, 2);
    expect(await contender.redlock.inspector.readState('job')).toEqual({ value: 'old', settled: false });
    await masters.servers[2]!.kill();
    const error = await get(once).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'QUORUM_UNAVAILABLE' });
    expect(String(error)).toContain('cannot open the state of "job": 3 of 3 masters must vote');
    await masters.servers[2]!.restart();
    await allVote(contender);
    await set('new');
    await lose(1, 2);
    expect(await get()).toBe('new');
    expect(await contender.redlock.inspector.readState('job')).toEqual({ value: 'new', settled: true });
  });

  // Protocol 10.4
  it('is set on the other masters if one loses its data while the lock is held', async () => {
    await set('before');
    await using lock = await contender.acquire('job', TTL, { extend: true, wait: 20_000 });
    expect(await persistently(() => lock.state.get())).toBe('before');
    await command(masters.servers[0]!.port, 'FLUSHALL');
    await persistently(() => lock.state.set('after'));
    await lock.release();
    expect(await command(masters.servers[0]!.port, 'EXISTS', 'lock:\0state:job')).toBe(0);
    // When its quarantine has ended it takes part again, and every reading writes the value to all masters.
    await eventually(async () => {
      expect(await get()).toBe('after');
      return (await command(masters.servers[0]!.port, 'EXISTS', 'lock:\0state:job')) === 1;
    });
  });

  // Protocol 10.2
  it('does not come back with a master that returns with an old copy of its data', async () => {
    await set('old');
    const first = masters.servers[0]!;
    await set('new');
    await lose(1);
    // The entry of the old data, below a marker that was written for the new data.
    await command(first.port, 'SET', 'lock:\0state:job', '1 1 0 2592000000 other@1\n"old"');
    expect(await get()).toBe('new');
    expect(await contender.redlock.inspector.readState('job')).toEqual({ value: 'new', settled: true });
  });
});
