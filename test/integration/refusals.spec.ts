import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import type { RedisMaster } from '../../lib/redis/redis-master.js';
import { redisMaster } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { acquiring, ask, extending, inspecting, releasing } from '../support/ask.js';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { contextOf } from '../support/context.js';
import { sharedMasters } from './support/shared-masters.js';

const PASSWORD = 'a-password-to-hide';
const TOKEN = 'a-token-to-hide';
/** Of a request that the script carries out, and not a plain SET. */
const QUEUED = { queue: { queues: ['queue of k'], waiter: 'me', waited: 0, reserveFor: 50 } };

type SourceOf = (server: RedisServer, options?: object) => RedisMasterSource;
const versions: [string, SourceOf][] = [
  ['6', ({ port }, options = {}) => ({ host: '127.0.0.1', port, ...options })],
  ['5', ({ port }, options = {}) => new Redis5({ host: '127.0.0.1', port, lazyConnect: true, ...options })],
];

const plain = sharedMasters(2);

describe.each(versions)('A server that refuses, through ioredis %s', (_, sourceOf) => {
  const open: { close(): unknown }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });

  async function serve(...args: string[]): Promise<RedisServer> {
    const server = await RedisServer.start({ args });
    open.push({ close: () => server.stop() });
    return server;
  }

  async function connect(server: RedisServer, options?: object): Promise<RedisMaster> {
    const master = redisMaster('masters[0]', sourceOf(server, options), contextOf());
    open.unshift(master);
    await master.connect();
    return master;
  }

  it('NOPERM: refuses a command that the user may not use', async () => {
    const server = await serve('--user', 'app', 'on', `>${PASSWORD}`, '~*', '&*', '+@all', '-set');
    const master = await connect(server, { username: 'app', password: PASSWORD });
    const answer = await ask(master, acquiring(['k'], TOKEN));
    const reason = 'its user lacks the permission +set: ACL SETUSER <its user> +set';
    expect(answer).toEqual({ kind: 'refused', code: 'NOPERM', reason, isVital: true });
    // In a script, the server answers with another code, and adds the position in the script.
    const inScript = await ask(master, acquiring(['k'], TOKEN, QUEUED));
    expect(inScript).toEqual(answer);
    expect(JSON.stringify(inScript)).not.toMatch(/\bapp\b|script: /);
    expect(await ask(master, releasing(['k'], TOKEN))).toEqual({ kind: 'gone' });
  });

  it('NOPERM: refuses a key that the user may not use, alone and in a batch', async () => {
    const server = await serve('--user', 'app', 'on', `>${PASSWORD}`, '~lock:*', '&*', '+@all');
    const master = await connect(server, { username: 'app', password: PASSWORD });
    const refused = { kind: 'refused', code: 'NOPERM', reason: expect.stringMatching(/access/) };
    expect(await ask(master, acquiring(['other'], TOKEN, QUEUED))).toEqual(refused);
    expect(await ask(master, extending(['other'], TOKEN))).toEqual(refused);
    expect(await ask(master, releasing(['other'], TOKEN))).toEqual(refused);
    const requests = [acquiring(['lock:a'], TOKEN, QUEUED), acquiring(['other', 'lock:b'], TOKEN)];
    expect(await Promise.all(requests.map((request) => ask(master, request)))).toEqual([{ kind: 'granted' }, refused]);
    expect(await ask(master, inspecting('lock:b'))).toEqual({ kind: 'granted' });
  });

  it('works for a user without permission to load scripts or to run INFO', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const server = await serve('--user', 'app', 'on', `>${PASSWORD}`, '~*', '+@all', '-info', '-script');
    const master = await connect(server, { username: 'app', password: PASSWORD });
    expect(await ask(master, acquiring(['k'], TOKEN, QUEUED))).toEqual({ kind: 'granted' });
    expect(await ask(master, releasing(['k'], TOKEN))).toEqual({ kind: 'granted' });
    // ioredis warns about its ready check.
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });

  it('READONLY: refuses after a primary has become a replica', async () => {
    const [server, primary] = plain.servers as [RedisServer, RedisServer];
    const master = await connect(server);
    await command(server.port, 'REPLICAOF', '127.0.0.1', String(primary.port));
    for (const request of [acquiring(['k'], TOKEN), acquiring(['k', 'l'], TOKEN), extending(['k'], TOKEN)]) {
      expect(await ask(master, request)).toMatchObject({ kind: 'refused', code: 'READONLY' });
    }
  });

  it('NOREPLICAS: refuses while a primary lacks the replicas that it needs for writes', async () => {
    const [server] = plain.servers as [RedisServer];
    const master = await connect(server);
    await command(server.port, 'CONFIG', 'SET', 'min-replicas-to-write', '1');
    for (const request of [acquiring(['k'], TOKEN), acquiring(['k', 'l'], TOKEN), acquiring(['k'], TOKEN, QUEUED)]) {
      expect(await ask(master, request)).toMatchObject({ kind: 'refused', code: 'NOREPLICAS' });
    }
    expect(await ask(master, inspecting('k', 'l'))).toEqual({ kind: 'granted' });
  });

  it('MISCONF: refuses while it cannot save', async () => {
    const server = await serve('--save', '3600', '1');
    const master = await connect(server);
    rmSync(server.dir, { recursive: true });
    await command(server.port, 'BGSAVE');
    let tries = 0;
    await eventually(async () => {
      const answer = await ask(master, acquiring([`try ${++tries}`], TOKEN));
      return answer.kind === 'refused' && answer.code === 'MISCONF';
    });
    expect(await ask(master, acquiring(['k'], TOKEN, QUEUED))).toMatchObject({ code: 'MISCONF' });
    expect(await ask(master, inspecting('k'))).toEqual({ kind: 'granted' });
  });

  // Protocol 2.2
  it('WRONGTYPE: refuses a key that is not a lock', async () => {
    const [server] = plain.servers as [RedisServer];
    const master = await connect(server);
    await command(server.port, 'RPUSH', 'list', 'x');
    await ask(master, acquiring(['mine'], TOKEN));
    const wrong = {
      kind: 'refused',
      code: 'WRONGTYPE',
      reason: 'Operation against a key holding the wrong kind of value',
    };
    expect(await ask(master, acquiring(['list'], TOKEN))).toEqual(wrong);
    expect(await ask(master, acquiring(['list'], TOKEN, QUEUED))).toEqual(wrong);
    expect(await ask(master, acquiring(['free', 'list'], TOKEN))).toEqual(wrong);
    expect(await ask(master, inspecting('free'))).toEqual({ kind: 'granted' });
    expect(await ask(master, extending(['list'], TOKEN))).toEqual(wrong);
    expect(await ask(master, inspecting('list'))).toEqual(wrong);
    // Releases still delete all keys that are locks.
    expect(await ask(master, releasing(['list', 'mine'], TOKEN))).toEqual(wrong);
    expect(await ask(master, inspecting('mine'))).toEqual({ kind: 'granted' });
  });

  it('reports a key without expiry as held for an unknown time', async () => {
    const [server] = plain.servers as [RedisServer];
    const master = await connect(server);
    await command(server.port, 'SET', 'a', 'forever');
    await command(server.port, 'SET', 'b', 'short', 'PX', '50000');
    const endless = { kind: 'held', remaining: undefined };
    expect(await ask(master, acquiring(['a'], TOKEN, QUEUED))).toEqual(endless);
    expect(await ask(master, acquiring(['a', 'b'], TOKEN))).toEqual(endless);
    expect(await ask(master, extending(['a', 'b'], TOKEN))).toEqual(endless);
    expect(await ask(master, inspecting('a', 'b'))).toEqual({ ...endless, waiting: 0 });
  });

  it('BUSY: refuses while a script does not end', async () => {
    const server = await serve('--lua-time-limit', '20');
    const master = await connect(server);
    const spinning = new Redis(server.port, '127.0.0.1');
    open.unshift({ close: () => spinning.disconnect() });
    const spin = spinning.eval('while true do end', 0).catch(() => undefined);
    let tries = 0;
    await eventually(async () => {
      const answer = await ask(master, acquiring([`try ${++tries}`], TOKEN));
      return answer.kind === 'refused' && answer.code === 'BUSY';
    });
    expect(await ask(master, extending(['k'], TOKEN))).toMatchObject({ kind: 'refused', code: 'BUSY' });
    const rescue = new Redis(server.port, '127.0.0.1', { enableReadyCheck: false });
    await rescue.script('KILL');
    await spin;
    rescue.disconnect();
    expect(await ask(master, acquiring(['k'], TOKEN))).toEqual({ kind: 'granted' });
  });

  it('LOADING: is unreachable until the data has been loaded', async () => {
    // Loading takes a millisecond per key. Meanwhile the server accepts connections.
    const server = await serve('--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024');
    const master = await connect(server);
    await command(server.port, 'EVAL', "for i = 1, 2000 do redis.call('SET', 'key' .. i, i) end", '0');
    await command(server.port, 'SAVE');
    const restarted = server.restart();
    await eventually(() => /loading/.test(master.problem()?.reason ?? ''));
    expect(await ask(master, acquiring(['k'], TOKEN))).toMatchObject({ kind: 'unreachable', sent: false });
    await restarted;
    await eventually(() => master.problem() === undefined);
    expect(await ask(master, acquiring(['k'], TOKEN))).toEqual({ kind: 'granted' });
  });

  it('is unreachable with a database that does not exist, instead of locking in another one', async () => {
    const master = await connect(await serve('--databases', '2'), { db: 5 });
    await eventually(() => /DB index/.test(master.problem()?.reason ?? ''));
    expect(await ask(master, acquiring(['k'], TOKEN))).toMatchObject({ kind: 'unreachable', sent: false });
  });

  it('is reachable through a unix socket', async () => {
    const server = await serve('--unixsocket', 'redis.sock');
    const path = join(server.dir, 'redis.sock');
    const master = await connect(server, { path });
    expect(master.name).toBe(path);
    expect(await ask(master, acquiring(['k'], TOKEN))).toEqual({ kind: 'granted' });
  });
});

describe('A server that is out of memory', () => {
  let server: RedisServer;
  let master: RedisMaster;

  beforeAll(async () => {
    server = await RedisServer.start();
    master = redisMaster('masters[0]', server.url, contextOf());
    await master.connect();
    await ask(master, acquiring(['held'], TOKEN, { ttl: 10_000 }));
    await ask(master, acquiring(['also held'], TOKEN, { ttl: 10_000 }));
    await command(server.port, 'CONFIG', 'SET', 'maxmemory', '1');
  });
  afterAll(async () => {
    await master.close();
    await server.stop();
  });

  it('refuses to acquire', async () => {
    expect(await ask(master, acquiring(['k'], TOKEN))).toMatchObject({ kind: 'refused', code: 'OOM' });
    expect(await ask(master, acquiring(['k', 'l'], TOKEN))).toMatchObject({ kind: 'refused', code: 'OOM' });
    expect(await ask(master, inspecting('k', 'l'))).toEqual({ kind: 'granted' });
  });

  it('extends held locks', async () => {
    expect(await ask(master, extending(['also held', 'held'], TOKEN, 60_000))).toEqual({ kind: 'granted' });
    const { remaining } = (await ask(master, inspecting('held'))) as { remaining?: number };
    expect(remaining).toBeGreaterThan(30_000);
  });

  it('heals all keys or none', async () => {
    await ask(master, releasing(['held'], TOKEN, 20_000));
    const heal = { ...extending(['absent', 'held'], TOKEN, 60_000), heals: true };
    expect(await ask(master, heal)).toMatchObject({ code: 'OOM' });
    const { remaining } = (await ask(master, inspecting('held'))) as { remaining?: number };
    expect(remaining).toBeLessThanOrEqual(20_000);
    expect(await ask(master, inspecting('absent'))).toEqual({ kind: 'granted' });
  });

  it('shortens and deletes locks', async () => {
    expect(await ask(master, releasing(['held'], TOKEN, 5_000))).toEqual({ kind: 'granted' });
    expect(await ask(master, releasing(['also held', 'held'], TOKEN))).toEqual({ kind: 'granted' });
    expect(await ask(master, inspecting('also held', 'held'))).toEqual({ kind: 'granted' });
  });
});
