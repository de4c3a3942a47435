import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, QuorumUnavailableError } from '../../lib/redlock/errors.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { leftovers, leftoversOn } from '../support/leftovers.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters, type SharedMasters } from './support/shared-masters.js';

describe('With five masters', () => {
  const masters = sharedMasters(5);
  let contender: Contender;

  beforeEach(async () => {
    contender = await Contender.on(masters.urls);
  });
  afterEach(() => contender.close());

  it('locks can be acquired from the start, before any process has noticed that a master hangs', async () => {
    const [hung, dead] = masters.servers;
    // The timeout is generous for busy machines. The acquisition waits only for the majority that answers.
    await using contender = await Contender.on(masters.urls, { masterTimeout: 2_000 });
    hung!.pause();
    await dead!.kill();
    for (let i = 0; i < 50; i++) {
      const lock = await contender.acquire(`first:${i}`, '10s', { wait: 0 });
      expect(lock.isHeld).toBe(true);
      await lock.release();
    }
  });

  it('the holder learns of the loss by the end of the validity when all masters freeze', async () => {
    const lock = await contender.acquire('frozen', 600, { extend: true });
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', () => resolve('lost')));
    for (const server of masters.servers) server.pause();
    // No extension can start to count later than now. A busy machine delays both timers alike.
    const end = new Promise((resolve) => setTimeout(resolve, 600, 'too late'));
    expect(await Promise.race([lost, end])).toBe('lost');
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lock.signal.reason).toMatchObject({ cause: 'expired' });
    expect(lock.isHeld).toBe(false);
    expect(() => lock.assertHeld()).toThrow(LockLostError);

    for (const server of masters.servers) server.resume();
    await expectNoKeys(masters);
  });

  it('keys on a hung master are released when it answers again', async () => {
    const [hung] = masters.servers;
    hung!.pause();
    for (let i = 0; i < 20; i++) await (await contender.acquire(`owed:${i}`, '20s')).release();
    const held = await contender.acquire('held', '20s');
    hung!.resume();
    await eventually(() => contender.masters[0]?.problem() === undefined);
    await held.release();
    await expectNoKeys(masters);
  });

  it('a master that was killed while a lock was held is used again when it comes back', async () => {
    const [down] = masters.servers;
    const lock = await contender.acquire('kept', '10s');
    await down!.kill();
    await eventually(() => contender.masters[0]?.problem() !== undefined);
    await lock.extend();
    await down!.restart();
    await eventually(() => contender.masters[0]?.problem() === undefined);
    // The extension restores the key on the master that lost its data.
    await lock.extend();
    await eventually(async () => (await command(down!.port, 'EXISTS', 'lock:kept')) === 1);
    await lock.release();
    await expectNoKeys(masters);
  });

  it('releases that a broken connection swallowed are sent again', async () => {
    const [cut] = masters.servers;
    const locks = await Promise.all(Array.from({ length: 20 }, (_, i) => contender.acquire(`cut:${i}`, '20s')));
    await command(cut!.port, 'CLIENT', 'KILL', 'TYPE', 'normal');
    await Promise.all(locks.map((lock) => lock.release()));
    await expectNoKeys(masters);
  });

  it('without a majority, no lock is granted, and the error names every master with its reason', async () => {
    const lock = await contender.acquire('majority', '10s');
    await Promise.all(masters.servers.slice(0, 3).map((server) => server.kill()));
    const attempt = contender.acquire('other', '10s', { wait: 0 });
    await expect(attempt).rejects.toBeInstanceOf(QuorumUnavailableError);
    const error = await attempt.catch((reason: unknown) => reason);
    expect(String(error)).toMatch(new RegExp(`127.0.0.1:${masters.servers[0]!.port}: unreachable`));
    await expect(lock.extend()).rejects.toBeInstanceOf(QuorumUnavailableError);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(await leftovers(masters.servers[3]!.port)).toEqual([]);
  });
});

/** The limit is far below the ttl, so the keys cannot have expired. */
async function expectNoKeys(masters: SharedMasters): Promise<void> {
  const ports = masters.servers.map(({ port }) => port);
  await eventually(async () => (await leftoversOn(ports)) === 0, 9_000);
}
