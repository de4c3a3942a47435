import { describe, expect, it } from '@jest/globals';
import { TTL } from '../src/config.js';
import { deploy, done, entriesOf, oneToN, overlaps, start } from './deployment.js';

describe('An instance that receives SIGTERM', () => {
  it('aborts its batch by the signal of the lock when the batch takes longer than the shutdown may', async () => {
    const [old, fresh] = await deploy({ BATCH_TIME: '3600000', DRAIN_TIMEOUT: '200ms' });
    const takenOver = fresh.says('done');
    old.kill('SIGTERM');
    await expect(old.ended).resolves.toEqual([0, null]);
    await takenOver;

    expect(entriesOf(old).map(({ event, batch }) => `${event} ${batch}`)).toEqual(['begun 1', 'stopped 1']);
    expect(done(fresh)[0]).toBe(1);
    expect(done()).toEqual(oneToN(done().length));
  }, 60_000);

  it('leaves at once if it only waited, and does not affect other instances', async () => {
    const [old, fresh] = await deploy();
    fresh.kill('SIGTERM');
    await expect(fresh.ended).resolves.toEqual([0, null]);
    await old.says('done');
    expect(entriesOf(fresh)).toEqual([]);
    expect(done()).toEqual(oneToN(done().length));
  }, 60_000);
});

describe('An instance that is killed', () => {
  it('blocks the import until its lock has expired, and its batch starts again', async () => {
    const [old, fresh] = await deploy({ BATCH_TIME: '3600000' });
    const takenOver = fresh.says('done');
    const killedAt = Date.now();
    old.kill('SIGKILL');
    await expect(old.ended).resolves.toEqual([null, 'SIGKILL']);
    await takenOver;

    const [first] = entriesOf(fresh);
    expect(first).toMatchObject({ event: 'begun', batch: 1 });
    const takeOver = first!.at - killedAt;
    // The remaining time of the lock is between zero and one ttl. The rest of the limit allows for a busy machine.
    expect(takeOver).toBeGreaterThan(TTL / 4);
    expect(takeOver).toBeLessThan(TTL * 2);
  }, 60_000);
});

describe('Without locks', () => {
  it('two instances import the same batch, so the tests above would detect a missing lock', async () => {
    const old = start({ LOCKS: 'off' });
    await old.says('begun');
    const fresh = start({ LOCKS: 'off' });
    await fresh.says('done');
    expect(overlaps()).not.toEqual([]);
  }, 60_000);
});
