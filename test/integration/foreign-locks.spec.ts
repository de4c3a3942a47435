import { describe, expect, it } from '@jest/globals';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const masters = sharedMasters(3);

/** Does what all such libraries have in common: they set one key with the given name on each master. */
async function onAll(name: string, ...args: (string | number)[]): Promise<unknown[]> {
  return Promise.all(masters.servers.map(({ port }) => command(port, name, ...args)));
}

const take = (key: string): Promise<unknown[]> => onAll('SET', key, 'theirs', 'NX', 'PX', 20_000);
const existsOnAll = (key: string, exists: boolean): Promise<void> =>
  eventually(async () => (await onAll('EXISTS', key)).every((answer) => answer === Number(exists)));
const contender = (keyPrefix: string): Promise<Contender> =>
  Contender.on(masters.urls, { keyPrefix, masterTimeout: '1s' });

describe('During a migration, with a prefix of one word and a colon', () => {
  it('a lock of this library keeps other libraries out until it is released', async () => {
    await using locks = await contender('locks:');
    const lock = await locks.acquire('account:1');
    await existsOnAll('locks:account:1', true); // on a quorum at first, and soon on all
    await expect(take('locks:account:1')).resolves.toEqual([null, null, null]);
    await expect(onAll('TYPE', 'locks:account:1')).resolves.toEqual(['string', 'string', 'string']);
    await lock.release();
    await existsOnAll('locks:account:1', false);
    await expect(take('locks:account:1')).resolves.toEqual(['OK', 'OK', 'OK']);
  });

  it('a lock of another library keeps this library out until it polls after the release', async () => {
    await using locks = await contender('locks:');
    await expect(take('locks:account:2')).resolves.toEqual(['OK', 'OK', 'OK']);
    await expect(locks.acquire('account:2', '10s', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });

    const waiting = locks.acquire('account:2', '10s', { wait: '15s' });
    await expect(onAll('PEXPIRE', 'locks:account:2', 30_000)).resolves.toEqual([1, 1, 1]);
    await onAll('DEL', 'locks:account:2');
    await using lock = await waiting;
    expect(lock.isHeld).toBe(true);
  });
});

it.each(['', 'app:jobs:', 'word'])(
  'With the prefix %j, keys of this library have names that no other library uses',
  async (keyPrefix) => {
    await using locks = await contender(keyPrefix);
    await using _ = await locks.acquire('account:3');
    await expect(take(`${keyPrefix}account:3`)).resolves.toEqual(['OK', 'OK', 'OK']);
  },
);
