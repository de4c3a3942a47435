import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { leftoversOn } from '../support/leftovers.js';
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
});

/** The limit is far below the ttl, so the keys cannot have expired. */
async function expectNoKeys(masters: SharedMasters): Promise<void> {
  const ports = masters.servers.map(({ port }) => port);
  await eventually(async () => (await leftoversOn(ports)) === 0, 9_000);
}
