import { describe, expect, it, jest } from '@jest/globals';
import { LockNotAcquiredError } from '../../lib/waiting/lock-not-acquired.error.js';
import { names } from '../support/hostile.js';
import { withClient } from '../support/command.js';
import { fc } from '../support/properties.js';
import { Contender } from '../support/redlocks.js';
import { sharedMasters } from './support/shared-masters.js';

jest.setTimeout(60_000);

const LONGEST = 2 ** 16;
/** The requests in this file are long, and the machine may be slow. */
const PATIENT = { ttl: '30s', masterTimeout: '5s', maxTtl: '30s' } as const;

describe('Odd names on a real server', () => {
  const masters = sharedMasters(1);

  /** Names of all keys, decoded from bytes. */
  async function keys(): Promise<string[]> {
    const found = await withClient(masters.servers[0]!.port, (client) => client.keysBuffer('*'));
    return found.map((key) => key.toString('utf8'));
  }

  it('are one resource exactly when the strings are equal', async () => {
    await using one = await Contender.on(masters.urls, PATIENT);
    await using other = await Contender.on(masters.urls, PATIENT);
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(names, { minLength: 2, maxLength: 4 }), async ([first = '', ...others]) => {
        await using lock = await one.acquire(first, '30s', { wait: 0 });
        await expect(other.acquire(first, '30s', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
        expect(await other.redlock.inspector.inspect(first)).toMatchObject({ state: 'held' });
        await using rest = await other.acquire(others, '30s', { wait: 0 });
        expect([lock.isHeld, rest.isHeld]).toEqual([true, true]);
        const held = (await keys()).filter((key) => !key.includes('\0'));
        expect(held.sort()).toEqual([first, ...others].map((name) => `lock:${name}`).sort());
      }),
      { numRuns: 150 },
    );
    expect((await keys()).filter((key) => !key.includes('\0'))).toEqual([]);
  });

  it('may have 65,536 characters, also while waiting in a queue', async () => {
    await using one = await Contender.on(masters.urls, PATIENT);
    await using other = await Contender.on(masters.urls, PATIENT);
    const [long, same] = ['\x01'.repeat(LONGEST), '\x01'.repeat(LONGEST - 1)];
    const lock = await one.acquire(long, '30s', { wait: 0 });
    await using apart = await other.acquire(same, '30s', { wait: 0 });
    const waiting = other.acquire(long, '30s', { wait: '20s' });
    await lock.release();
    await using next = await waiting;
    expect([lock.isHeld, apart.isHeld, next.isHeld]).toEqual([false, true, true]);
  });

  it('can be locked 512 at a time', async () => {
    await using one = await Contender.on(masters.urls, PATIENT);
    const many = Array.from({ length: 512 }, (_, i) => `${i}*[?]{`);
    const lock = await one.acquire(many, '30s', { wait: 0 });
    await expect(one.acquire(['x', '511*[?]{'], '30s', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    expect(await lock.fencingToken()).toBeGreaterThan(0);
    await lock.extend();
    await lock.release();
    expect((await keys()).filter((key) => !key.endsWith('\0fences'))).toEqual([]);
  });
});
