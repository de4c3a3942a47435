import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { LockLostError } from '../../lib/redlock/errors.js';
import type { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { Contender } from '../support/redlocks.js';

jest.setTimeout(60_000);

const TTL = 6_000;
const OPTIONS = { ttl: TTL, masterTimeout: 500, restartGuard: false };
const KEY = 'lock:stock';

type Forget = (servers: readonly RedisServer[]) => Promise<unknown>;

/** What is done to how many masters, and what the holder is told. */
const FAULTS: readonly (readonly [string, number, Forget, RegExp])[] = [
  [
    'one Redis restarted without its data',
    1,
    ([a]) => a!.restart(),
    /the key was gone from 1 of 1 master: another holder may have had it/,
  ],
  [
    'the key deleted on two of three masters',
    3,
    ([a, b]) => Promise.all([a!, b!].map(({ port }) => command(port, 'DEL', KEY))),
    /the key was gone from 2 of 3 masters: another holder may have had it/,
  ],
  [
    'all of three masters flushed',
    3,
    (servers) => Promise.all(servers.map(({ port }) => command(port, 'FLUSHALL'))),
    /the key was gone from [23] of 3 masters: another holder may have had it/,
  ],
];

// Protocol 6.4 and 7.6
describe('Without the guard, a holder whose keys another one has had meanwhile', () => {
  let masters: Masters;
  let holder: Contender;
  let rival: Contender;
  const lockLost = jest.fn();

  async function begin(count: number): Promise<void> {
    lockLost.mockClear();
    masters = await startMasters(count);
    holder = await Contender.on(masters.urls, OPTIONS, { lockLost });
    rival = await Contender.on(masters.urls, OPTIONS);
  }

  /** The other one acquires the lock, works and releases it. */
  async function comeAndGo(): Promise<void> {
    const lock = await rival.acquire('stock', TTL, { wait: '10s' });
    await lock.release();
  }

  afterEach(async () => {
    await holder.close();
    await rival.close();
    await masters.stop();
  });

  it.each(FAULTS)('is told at its next extension: %s', async (_, count, forget, message) => {
    await begin(count);
    const lock = await holder.acquire('stock', TTL, { extend: true });
    await forget(masters.servers);
    await comeAndGo();
    await eventually(() => lock.signal.aborted, TTL);
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lock.signal.reason).toMatchObject({ cause: 'gone', message: expect.stringMatching(message) });
    expect(lock.isHeld).toBe(false);
    expect(lockLost).toHaveBeenCalledTimes(1);
  });

  it('is told of the other one if that still has the lock', async () => {
    await begin(3);
    const lock = await holder.acquire('stock', TTL, { extend: false });
    await Promise.all(masters.servers.map(({ port }) => command(port, 'DEL', KEY)));
    const other = await rival.acquire('stock', TTL, { wait: 0 });
    await lock.release();
    expect(lock.loss?.cause).toBe('owner-changed');
    expect(other.isHeld).toBe(true);
    await other.release();
    expect(other.loss).toBeUndefined();
  });
});
