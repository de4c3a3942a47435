import { describe, expect, it } from '@jest/globals';
import { TTL } from '../src/config.js';
import { deploy, done, entriesOf, oneToN, overlaps } from './deployment.js';

describe('An instance that receives SIGTERM', () => {
  it('ends its batch, and the next instance continues at once', async () => {
    const [old, fresh] = await deploy();
    await old.says('begun');
    const takenOver = fresh.says('done');
    old.kill('SIGTERM');
    await expect(old.ended).resolves.toEqual([0, null]);
    await takenOver;

    // The instance has ended every batch that it began, and no other batch began meanwhile.
    expect(entriesOf(old).filter(({ event }) => event === 'begun')).toHaveLength(done(old).length);
    expect(overlaps()).toEqual([]);
    expect(done()).toEqual(oneToN(done().length));
    const lastDone = entriesOf(old).at(-1)!;
    const handOver = entriesOf(fresh)[0]!.at - lastDone.at;
    expect(lastDone.event).toBe('done');
    // Waiting for the lock to expire would have taken longer, because it was extended less than half a ttl ago.
    expect(handOver).toBeLessThan(TTL / 2);
  }, 60_000);
});
