import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { createCertificates } from '../support/certificates.js';
import { cliProcess } from '../support/cli.js';
import { command, withClient } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { Contender } from '../support/redlocks.js';
import { Sentinel } from '../support/sentinel.js';
import { deadPort } from '../support/dead-port.js';
import { shared } from '../support/shared.js';

jest.setTimeout(120_000);

const GROUP = 'locks';
const USER = ['--user', 'app', 'on', '>secret', '~*', '&*', '+@all'];

describe('A master that is given as the URL of its sentinels', () => {
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

  const url = (sentinelPassword: string): string =>
    `redis+sentinel://app:secret@127.0.0.1:${sentinel.port}/${GROUP}?db=2` +
    `&sentinelUsername=watcher&sentinelPassword=${sentinelPassword}`;

  it('logs in to sentinel and server, selects the database, and follows a failover', async () => {
    await using contender = await Contender.on([url('hunter2')], { masterTimeout: 1_000 }, {}, { within: 30_000 });
    const lock = await contender.acquire('a');
    expect(await withClient(primary.port, (client) => client.keys('lock:a'), { db: 2 })).toEqual(['lock:a']);
    expect(await command(primary.port, 'CLIENT', 'LIST')).toContain('user=app');
    await lock.release();

    await primary.kill();
    await eventually(async () => (await sentinel.primary(GROUP)) === replica.port, 30_000);
    await using next = await contender.acquire('a', undefined, { wait: '30s' });
    expect(next.isHeld).toBe(true);
  });

  it('does not connect with a wrong password of the sentinel, and says so without showing it', async () => {
    const attempt = Contender.on([url('wrong-one')], { masterTimeout: 1_000 }, {}, { within: 1_000 });
    await expect(attempt).rejects.toThrow(/WRONGPASS/);
    await expect(attempt).rejects.not.toThrow(/wrong-one/);
  });
});

describe('A master that is given as the URL of sentinels with TLS', () => {
  const certificates = shared(createCertificates);

  it('is reached with TLS at the sentinel and at the server', async () => {
    const tls = (port: number): string[] => [...certificates().argsFor('valid', port), '--tls-replication', 'yes'];
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
    const { stdout } = await cliProcess(args, { env: { NODE_EXTRA_CA_CERTS: certificates().ca } });
    expect(JSON.parse(stdout)).toMatchObject({ voters: [`${GROUP} of sentinels 127.0.0.1:${port}`] });
  });
});
