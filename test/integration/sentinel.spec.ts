import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LockObserver } from '../../lib/core/observer.js';
import type { RedlockOptions } from '../../lib/core/settings/options.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { Sentinel } from '../support/sentinel.js';

jest.setTimeout(120_000);

const GROUP = 'locks';

describe('A master behind a sentinel, whose replica is promoted without the last lock', () => {
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

  it('votes only after the lock must have ended, and reports why, with the guard', async () => {
    const guarded = { ttl: 4_000, maxTtl: 4_000, restartGuard: true };
    await using holder = await contender(guarded);
    // Now the replica has the marker, but not the last lock.
    await eventually(async () => Number(await command(replica.port, 'DBSIZE')) > 0, 30_000);
    const lock = await holder.acquire('a', undefined, { wait: '30s' });
    await failOver();
    const reasons: string[] = [];
    await using other = await contender(guarded, { masterQuarantined: (_, reason) => void reasons.push(reason) });
    await using next = await other.acquire('a', undefined, { wait: '30s' });
    expect([next.isHeld, lock.isHeld]).toEqual([true, false]);
    expect(reasons).toContain('it was promoted from a replica');
  });

  it('lets two holders hold one lock without the guard, which is the default for one master', async () => {
    const unguarded = { ttl: '1m', maxTtl: '1m' } as const; // longer than any failover here
    await using holder = await contender(unguarded);
    const lock = await holder.acquire('a');
    await failOver();
    await using other = await contender(unguarded);
    await using next = await other.acquire('a', undefined, { wait: '30s' });
    expect([next.isHeld, lock.isHeld]).toEqual([true, true]);
  });
});
