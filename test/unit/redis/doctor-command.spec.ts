import { describe, expect, it } from '@jest/globals';
import { resolveSettings } from '../../../lib/core/settings/settings.js';
import type { ClusterSettings } from '../../../lib/redis/cluster/cluster-source.js';
import { doctorCommand, placeholderClusterUrlOf, placeholderUrlOf } from '../../../lib/redis/doctor-command.js';
import type { RedisClient } from '../../../lib/redis/redis-client.interface.js';

const GROUP = { sentinels: [{ host: 'a' }, { host: '::1', port: 1 }], name: 'my locks' };
const TLS = { tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {} };

describe('The URL of a master for the command line', () => {
  it.each([
    [{ host: '10.0.0.1', port: 6379 }, 'redis://10.0.0.1:6379'],
    [{ host: '::1', port: 1, tls: {}, db: 2 }, 'rediss://[::1]:1/2'],
    [{ host: 'h', port: 1, username: 'app', password: 'hunter2' }, 'redis://USER:PASSWORD@h:1'],
    [{ host: 'h', port: 1, username: 'default', password: 'hunter2' }, 'redis://:PASSWORD@h:1'],
    [{ path: '/run/redis.sock', port: 1 }, '/run/redis.sock'],
    [{ ...GROUP, host: 'localhost', port: 6379 }, 'redis+sentinel://a:26379,[::1]:1/my%20locks'],
    [
      { ...GROUP, ...TLS, db: 2, sentinelPassword: 'p' },
      'rediss+sentinel://a:26379,[::1]:1/my%20locks?db=2&sentinelPassword=PASSWORD',
    ],
    [
      { ...GROUP, password: 'p', sentinelUsername: 'u' },
      'redis+sentinel://:PASSWORD@a:26379,[::1]:1/my%20locks?sentinelUsername=USER',
    ],
    [{ ...GROUP, tls: {} }, 'redis+sentinel://a:26379,[::1]:1/my%20locks'],
    [{ ...GROUP, sentinelTLS: {} }, 'redis://PRIMARY:6379'],
    [{ sentinels: [{ host: 's' }], host: 'localhost', port: 6379 }, 'redis://PRIMARY:6379'],
  ])('has placeholders in place of credentials: %j', (options, url) => {
    expect(placeholderUrlOf(options)).toBe(url);
  });
});

describe('The URL of a cluster for the command line', () => {
  const clusterOf = (options: object, more: Partial<ClusterSettings> = {}): ClusterSettings => ({
    ...{
      name: 'cluster',
      nodeTimeout: undefined,
      usesTls: false,
      batchesPartitions: false,
      translate: (address) => address,
    },
    seeds: [
      { host: 'a', port: 7000 },
      { host: '::1', port: 7001 },
    ],
    clientFor: () => ({ options }) as RedisClient,
    ...more,
  });

  it.each<[object, Partial<ClusterSettings>, string]>([
    [{}, {}, 'redis+cluster://a:7000,[::1]:7001'],
    [{ username: 'app', password: 'hunter2' }, {}, 'redis+cluster://USER:PASSWORD@a:7000,[::1]:7001'],
    [
      { password: 'hunter2', tls: {} },
      { usesTls: true, nodeTimeout: 15_000 },
      'rediss+cluster://:PASSWORD@a:7000,[::1]:7001?clusterNodeTimeout=15000',
    ],
  ])('has all nodes, and placeholders in place of credentials: %j %j', (options, more, url) => {
    expect(placeholderClusterUrlOf(clusterOf(options, more))).toBe(url);
  });
});

describe('The command that examines the masters', () => {
  const urls = ['redis://a:1', 'redis://b:1', 'redis://c:1'];
  const masters = '--master redis://a:1 --master redis://b:1 --master redis://c:1';

  it.each([
    [{}, masters],
    [{ keyPrefix: 'app:' }, `${masters} --prefix app:`],
    [{ keyPrefix: "it's " }, `${masters} --prefix 'it'\\''s '`],
    [{ restartGuard: false }, `${masters} --no-restart-guard`],
  ])('has the settings on which its result depends: %j', (options, args) => {
    expect(doctorCommand(urls, resolveSettings(options, 3))).toBe(`npx nestjs-redlock doctor ${args}`);
  });
});
