import { describe, expect, it, jest } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { RedlockConfigError } from '../../lib/settings/config.error.js';
import { contextOf } from '../support/context.js';
import { masterFrom, redisMaster, redisMasters } from '../../lib/redis/master-source.js';
import type { RedisMasterSource } from '../../lib/redis/source.interface.js';

describe('The source of a master', () => {
  it.each<[RedisMasterSource, string]>([
    ['redis://10.0.0.1', '10.0.0.1:6379'],
    ['redis://10.0.0.1:7000/3', '10.0.0.1:7000'],
    ['REDISS://Redis.Example.COM:7000', 'redis.example.com:7000'],
    ['redis://user:secret@host', 'host:6379'],
    ['redis://:secret@host?db=2&family=6', 'host:6379'],
    ['redis://[::1]:7000', '[::1]:7000'],
    ['/run/redis.sock', '/run/redis.sock'],
    ['/run/redis.sock?db=1', '/run/redis.sock'],
    [{ port: 7000 }, 'localhost:7000'],
    [{ host: 'HOST', password: 'secret' }, 'host:6379'],
    [{ host: '::1' }, '[::1]:6379'],
    [{ path: '/run/redis.sock' }, '/run/redis.sock'],
    [{ sentinels: [{ host: 'b', port: 1 }, { host: 'a' }], name: 'm' }, 'm of sentinels a:26379, b:1'],
    [{ sentinels: [{}], name: 'm' }, 'm of sentinels localhost:26379'],
    ['redis+sentinel://b:1,a/m', 'm of sentinels a:26379, b:1'],
    ['REDISS+SENTINEL://user:secret@A,[::1]:7/m?db=2&sentinelPassword=secret', 'm of sentinels [::1]:7, a:26379'],
    ['redis+cluster://b:1,a', 'cluster of a:6379, b:1'],
    [' redis://a:6379 ', 'a:6379'],
    [{ cluster: ['B:1', 'a'] }, 'cluster of a:6379, b:1'],
    [new Redis(7000, 'six', { lazyConnect: true, password: 'secret' }), 'six:7000'],
    [new Redis5(7000, 'five', { lazyConnect: true, password: 'secret' }), 'five:7000'],
  ])('gives %s the name %s', (source, name) => expect(masterFrom('masters[0]', source, contextOf()).name).toBe(name));

  it.each<[unknown, RegExp]>([
    ['', / must be a redis:\/\/ or rediss:\/\/ URL/],
    ['localhost', / must begin with redis:\/\/ or rediss:\/\//],
    ['http://localhost', / must begin with redis:\/\/ or rediss:\/\//],
    ['redis://', / must (?:name a host|.*URL)/],
    ['redis:///3', / must name a host/],
    ['redis://host:0', /.*port from 1 to 65535/],
    ['redis://host:65536', /.*port from 1 to 65535/],
    ['redis://host name:6379', /.*URL that can be parsed/],
    ['redis://host/three', /.*number of a database/],
    ['redis://host?family=5', /.*family/],
    ['redis://host?enableOfflineQueue=true', /.*no parameter but db and family/],
    ['redis://host?password=p', /.*no parameter but db and family: write user and password as in redis:/],
    ['redis://u:100%@host', /.*%25/],
    ['redis://host#x', /.*%23/],
    ['redis-sentinel://a/m', / must begin with redis\+sentinel:\/\/ or rediss\+sentinel:\/\//],
    [undefined, /.*got undefined/],
    [{}, / must say where the server is: host, port, path, sentinels/],
    [{ url: 'redis://host' }, / must say where the server is: .*; a URL is a string and no option/],
    [{ host: '' }, /\.host must be a non-empty string/],
    [{ port: 0 }, /\.port must be from 1 to 65535/],
    [{ path: 1 }, /\.path must be a string/],
    [{ path: 'unix://run/redis.sock' }, /\.path must be the path of a unix socket/],
    [{ path: '/run/a\nb' }, /\.path must be the path of a unix socket/],
    [{ sentinels: [] }, /\.sentinels must be a list/],
    [{ sentinels: [null] }, /\.sentinels\[0\] must say where the sentinel is: host, port/],
    [{ sentinels: [{}, 'host'] }, /\.sentinels\[1\] must say where the sentinel is: host, port/],
    [{ sentinels: [{ host: '' }] }, /\.sentinels\[0\]\.host must be a non-empty string/],
    [{ sentinels: [{}], name: 1 }, /\.name must be a printable text/],
    [{ sentinels: [{}], name: 'a\nb' }, /\.name must be a printable text/],
    [new Map(), /.*ioredis options or an ioredis client/],
    [{ host: 'a', username: 7 }, /\.username must be a string, or a function that gives one/],
    [{ host: 'a', password: 7 }, /\.password must be a string, or a function that gives one/],
  ])('refuses %j', (source, message) => {
    const attempt = (): unknown => redisMaster('masters[1]', source as RedisMasterSource, contextOf());
    expect(attempt).toThrow(RedlockConfigError);
    expect(attempt).toThrow(new RegExp(`^masters\\[1\\]${message.source}`));
  });

  it.each([
    ['redis://user:secret@host:1/x', 'redis://***@host:1/***'],
    ['redis://host/0?family=5', 'redis://host/0'],
    ['rediss://[::1]:7/1?family=5', 'rediss://[::1]:7/1'],
    ['redis://a:1,redis://b:2/0', 'redis://a:1,redis://b:2/0'],
    ['redis+sentinel://a:1,b:2/m?family=5', 'redis+sentinel://a:1,b:2/***'],
    ['redis://a/0&password=secret', 'redis://a/***'],
    ['redis://a:1&password=secret', 'redis://***'],
    ['redis://a;password=secret', 'redis://***'],
    ['redis://a,password=secret', 'redis://a***'],
    ['redis://u:1secret', 'redis://***'],
    ['localhost:6379', 'localhost:6379'],
    ['/run/redis.sock?family=5', '***'],
    ['/run/redis.sock&password=secret', '***'],
    ['/run/redis.sock,password=secret', '***'],
  ])('is shown as far as it is an address: %s', (url, shown) => {
    const attempt = (): unknown => redisMaster('masters[0]', url, contextOf());
    expect(attempt).toThrow(`got ${JSON.stringify(shown)}`);
    expect(attempt).toThrow(expect.objectContaining({ value: shown }));
  });

  it.each<[RedisMasterSource, RedisMasterSource]>([
    ['redis://host', 'redis://HOST:6379/1'],
    ['redis://u:p@host:1', { host: 'host', port: 1, db: 4 }],
    ['/run/a.sock', { path: '/run/a.sock' }],
    ['redis+sentinel://a,b/m', { sentinels: [{ host: 'b' }, { host: 'a' }], name: 'm' }],
  ])('treats %j and %j as one server', (one, same) => {
    const attempt = (): unknown => redisMasters('masters', ['redis://x', one, same], contextOf());
    expect(attempt).toThrow(RedlockConfigError);
    expect(attempt).toThrow(/masters\[2\] must be another server than masters\[1\]/);
  });

  it('accepts different servers', () => {
    const sources = ['redis://localhost', 'redis://127.0.0.1', 'redis://localhost:6380', '/run/a.sock'];
    expect(redisMasters('masters', sources, contextOf())).toHaveLength(4);
  });
});

describe('The connection of a master', () => {
  // Protocol 4.1
  it('has the settings that a lock needs, whatever the client specifies', () => {
    const client = new Redis({
      ...{ lazyConnect: true, host: 'host', enableOfflineQueue: true, keyPrefix: 'x:', commandTimeout: 5 },
      ...{ maxRetriesPerRequest: 20, autoResendUnfulfilledCommands: true, readOnly: true },
      ...{ stringNumbers: true, enableReadyCheck: false, retryStrategy: () => null, password: 'p', db: 3, tls: {} },
    });
    const own = ownConnection(client);
    expect(own).toMatchObject({
      ...{ lazyConnect: true, host: 'host', enableOfflineQueue: false, keyPrefix: '', maxRetriesPerRequest: 0 },
      ...{ autoResendUnfulfilledCommands: false, readOnly: false, stringNumbers: false },
      ...{ enableReadyCheck: true, password: 'p', db: 3, tls: {} },
      ...{ autoResubscribe: false, enableAutoPipelining: false, monitor: false, reconnectOnError: null },
    });
    expect([own.commandTimeout, client.status]).toEqual([undefined, 'wait']);
  });

  it('is retried for as long as the application lives, at a bounded rate', () => {
    const own = ownConnection(new Redis({ lazyConnect: true }));
    for (const [attempt, usual] of [
      ...[[1, 10] as const, [2, 20] as const, [4, 80] as const, [6, 320] as const],
      ...[[7, 500] as const, [1_000, 500] as const, [1_000_000, 500] as const],
    ]) {
      const delay = own.retryStrategy?.(attempt);
      expect(delay).toBeGreaterThanOrEqual(0.5 * usual);
      expect(delay).toBeLessThanOrEqual(1.5 * usual);
    }
  });
});

/** Settings of the connection that is opened for a client. */
function ownConnection(client: Redis): RedisOptions {
  const duplicate = jest.spyOn(client, 'duplicate');
  redisMaster('masters[0]', client, contextOf());
  return (duplicate.mock.results[0]?.value as Redis).options;
}
