import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, QuorumUnavailableError } from '../../lib/errors.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

const masters = sharedMasters(5);

/** An instance whose list has these masters of five. */
function instanceWith(numbers: readonly number[], restartGuard = false): Promise<Contender> {
  const urls = numbers.map((number) => masters.urls[number - 1]!);
  return Contender.on(urls, { ttl: '10s', maxTtl: '1m', restartGuard });
}

describe('Instances with different lists of masters', () => {
  it.each([
    { from: [1], to: [1, 2] },
    { from: [1, 2], to: [1, 2, 3] },
    { from: [1, 2, 3], to: [1, 2, 3, 4] },
    { from: [1, 2, 3, 4], to: [1, 2, 3, 4, 5] },
  ])('exclude each other while one list has one master more: $from and $to', async ({ from, to }) => {
    await using before = await instanceWith(from);
    await using after = await instanceWith(to);
    for (const [holder, other] of [
      [before, after],
      [after, before],
    ] as const) {
      const lock = await holder.acquire('stock', '10s');
      await expect(other.acquire('stock', '10s', { wait: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
      await lock.release();
    }
  });

  it('can hold one lock at once if a step between one master and three is left out', async () => {
    await using before = await instanceWith([1]);
    await using after = await instanceWith([1, 2, 3]);
    const locks = [await before.acquire('stock', '10s'), await after.acquire('stock', '10s')];
    expect(locks.map(({ isHeld }) => isHeld)).toEqual([true, true]);
  });

  it('go on with two masters while the first ones with three wait for the restart guard', async () => {
    await using before = await instanceWith([1, 2]);
    await using after = await instanceWith([1, 2, 3], true);
    await expect(after.acquire('stock', '10s', { wait: 0 })).rejects.toBeInstanceOf(QuorumUnavailableError);
    expect((await before.acquire('stock')).isHeld).toBe(true);
  });
});
