import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import type { RedlockOptions } from '../../lib/settings/options.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import { createCertificates } from '../support/certificates.js';
import { cliProcess } from '../support/cli.js';
import { command, withClient } from '../support/command.js';
import { deadPort } from '../support/dead-port.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { Sentinel } from '../support/sentinel.js';

jest.setTimeout(120_000);

const GROUP = 'locks';
const USER = ['--user', 'app', 'on', '>secret', '~*', '&*', '+@all'];

describe('A Sentinel group', () => {
  let primary: RedisServer;
  let replica: RedisServer;
  let sentinel: Sentinel;

  beforeEach(async () => {
    // Otherwise it waits five seconds for more replicas.
    primary = await RedisServer.start({ args: [...USER, '--repl-diskless-sync-delay', '0'] });
    replica = await RedisServer.start({ args: [...USER, '--replicaof', `127.0.0.1 ${primary.port}`] });
    sentinel = await Sentinel.watch(GROUP, primary.port, ['user watcher on >hunter2 ~* &* +@all']);
  });

  afterEach(async () => {
    await sentinel[Symbol.asyncDispose]();
    await Promise.all([primary.stop(), replica.stop()]);
  });

  const contender = (options: RedlockOptions = {}, source?: RedisMasterSource, within = 30_000): Promise<Contender> => {
    const group = { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: GROUP };
    return Contender.on([source ?? group], { masterTimeout: 1_000, ...options }, {}, { within });
  };

  const url = (sentinelPassword: string): string =>
    `redis+sentinel://app:secret@127.0.0.1:${sentinel.port}/${GROUP}?db=2` +
    `&sentinelUsername=watcher&sentinelPassword=${sentinelPassword}`;

  async function failOver(): Promise<void> {
    await primary.kill();
    await eventually(async () => (await sentinel.primary(GROUP)) === replica.port, 30_000);
  }

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

  it('whose replica is promoted without the last lock lets two holders hold it, as its documentation says', async () => {
    const unguarded = { ttl: '1m', maxTtl: '1m' } as const; // longer than any failover here
    await using holder = await contender(unguarded);
    const lock = await holder.acquire('a');
    await failOver();
    // Simulates a replication lag: the key has not reached the replica.
    await command(replica.port, 'DEL', 'lock:a');
    await using other = await contender(unguarded);
    await using next = await other.acquire('a', undefined, { wait: '30s' });
    expect([next.isHeld, lock.isHeld]).toEqual([true, true]);
  });

  it('that is given as a URL is logged in to, at sentinel and server, and the database is selected', async () => {
    await using holder = await contender({}, url('hunter2'));
    await using _lock = await holder.acquire('a');
    expect(await withClient(primary.port, (client) => client.keys('lock:a'), { db: 2 })).toEqual(['lock:a']);
    expect(await command(primary.port, 'CLIENT', 'LIST')).toContain('user=app');
    const attempt = contender({}, url('wrong-one'), 1_000);
    await expect(attempt).rejects.toThrow(/WRONGPASS/);
    await expect(attempt).rejects.not.toThrow(/wrong-one/);
  });
});

it('A master that is given as the URL of sentinels with TLS is reached with TLS at the sentinel and at the server', async () => {
  await using certificates = await createCertificates();
  const tls = (port: number): string[] => [...certificates.argsFor('valid', port), '--tls-replication', 'yes'];
  await using primary = await RedisServer.start({ args: tls });
  await using _replica = await RedisServer.start({
    args: (port) => [...tls(port), '--replicaof', `127.0.0.1 ${primary.port}`],
  });
  const port = await deadPort();
  // The sentinel keeps its port without TLS for the questions of this test.
  const config = tls(port).join(' ').split(' --').slice(1);
  await using sentinel = await Sentinel.watch(GROUP, primary.port, config);
  expect(await sentinel.primary(GROUP)).toBe(primary.port);
  const url = `rediss+sentinel://127.0.0.1:${port}/${GROUP}`;
  const args = ['doctor', '--master', url, '--no-restart-guard', '--timeout', '10s', '--json'];
  const { stdout } = await cliProcess(args, { env: { NODE_EXTRA_CA_CERTS: certificates.ca } });
  expect(JSON.parse(stdout)).toMatchObject({ voters: [`${GROUP} of sentinels 127.0.0.1:${port}`] });
});
