import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LockObserver } from '../../lib/operate/observer.js';
import type { RedlockOptions } from '../../lib/settings/options.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { Sentinel } from '../support/sentinel.js';

jest.setTimeout(120_000);

const GROUP = 'locks';

describe('A Sentinel group whose replica is promoted without the last lock', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let sentinel: Sentinel;

  beforeEach(async () => {
    // Otherwise it waits five seconds for more replicas.
    primary = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${primary.port}`] });
    sentinel = await Sentinel.watch(GROUP, primary.port);
  });

  afterEach(async () => {
    await sentinel[Symbol.asyncDispose]();
    await Promise.all([primary.stop(), replica.stop()]);
  });

  const contender = (options: RedlockOptions, observer: LockObserver = {}): Promise<Contender> =>
    Contender.on(
      [{ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: GROUP }],
      { masterTimeout: 1_000, ...options },
      observer,
      { within: 30_000 },
    );

  async function failOver(): Promise<void> {
    await primary.kill();
    await eventually(async () => (await sentinel.primary(GROUP)) === replica.port, 30_000);
    // Simulates a replication lag: the key has not reached the replica.
    await command(replica.port, 'DEL', 'lock:a');
  }

  it('is refused with the restart guard, which would take the replica for a master that has lost nothing', async () => {
    await expect(contender({ restartGuard: true })).rejects.toThrow(/restartGuard must be false with a Sentinel group/);
  });

  it('goes on with the replica: a lock that it has stays held, and is handed over to the waiter', async () => {
    await using holder = await contender({ ttl: '20s' });
    await using other = await contender({ ttl: '20s' });
    const lock = await holder.acquire('b', undefined, { extend: true });
    await eventually(async () => (await command(replica.port, 'EXISTS', 'lock:b')) === 1, 10_000);
    const waiting = other.acquire('b', undefined, { wait: '60s' });
    await failOver();
    await eventually(async () => (await holder.redlock.masters.probe()).canVote, 30_000);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await using next = await waiting;
    expect(next.isHeld).toBe(true);
  });

  it('lets two holders hold one lock, which its documentation says', async () => {
    const unguarded = { ttl: '1m', maxTtl: '1m' } as const; // longer than any failover here
    await using holder = await contender(unguarded);
    const lock = await holder.acquire('a');
    await failOver();
    await using other = await contender(unguarded);
    await using next = await other.acquire('a', undefined, { wait: '30s' });
    expect([next.isHeld, lock.isHeld]).toEqual([true, true]);
  });
});
