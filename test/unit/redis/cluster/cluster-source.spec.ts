import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { RedlockConfigError } from '../../../../lib/core/errors.js';
import {
  clusterSettings,
  isClusterSource,
  type RedisClusterNatMap,
  type RedisClusterOptions,
  type RedisClusterSource,
} from '../../../../lib/redis/cluster/cluster-source.js';
import type { NodeAddress } from '../../../../lib/redis/urls.js';

type Source = string | RedisClusterOptions | RedisClusterSource;

const lazyConnect = true;
const at = (host: string, port: number): NodeAddress => ({ host, port });

type StartupNodes = ConstructorParameters<typeof Cluster>[0];
interface ClientOptions {
  readonly scaleReads?: 'all';
  readonly keyPrefix?: string;
  readonly natMap?: Record<string, NodeAddress>;
  readonly redisOptions: Pick<
    RedisOptions,
    'username' | 'password' | 'connectionName' | 'family' | 'keyPrefix' | 'tls'
  >;
}
const versions: [string, (nodes: StartupNodes, options: ClientOptions) => RedisClusterSource][] = [
  ['5', (nodes, options) => new Cluster5(nodes, { lazyConnect, ...options })],
  ['6', (nodes, options) => new Cluster(nodes, { lazyConnect, ...options })],
];

/** The settings of the client for a node. */
function clientOptions(source: unknown, address = at('node', 7000)): RedisOptions {
  return clusterSettings('masters[1]', source).clientFor(address).options;
}

/** @param message what follows the name of the option */
function expectRefusal(source: unknown, message: RegExp): void {
  const attempt = (): unknown => clusterSettings('masters[1]', source);
  expect(attempt).toThrow(RedlockConfigError);
  expect(attempt).toThrow(new RegExp(`^masters\\[1\\]${message.source}`));
}

describe('The source of a cluster', () => {
  it.each<[Source, string]>([
    [{ cluster: ['b:7001', 'a'] }, 'cluster of a:6379, b:7001'],
    [{ cluster: ['A:7000', 'a:7000', { host: 'a', port: 7000 }] }, 'cluster of a:7000'],
    [{ cluster: [{ host: 'Redis.Example.COM' }] }, 'cluster of redis.example.com:6379'],
    [
      { cluster: ['[::1]:7000', { host: '::2' }, '[FE80::1%eth0]'] },
      'cluster of [::1]:7000, [::2]:6379, [fe80::1%eth0]:6379',
    ],
    [{ cluster: ['redis://u:secret@b:1', 'redis://u:secret@a/0'] }, 'cluster of a:6379, b:1'],
    [{ cluster: ['rediss://[::1]:7000?family=6', 'a:1'], db: 0 }, 'cluster of [::1]:7000, a:1'],
    ['redis+cluster://b:7001,a', 'cluster of a:6379, b:7001'],
    ['redis+cluster://u:secret@b, a:1/', 'cluster of a:1, b:6379'],
    [
      'REDISS+CLUSTER://:secret@B:1,[::1]:2,[fe80::1%25eth0]/0?family=6',
      'cluster of [::1]:2, [fe80::1%eth0]:6379, b:1',
    ],
    ['redis+cluster://a?clusterNodeTimeout=15s', 'cluster of a:6379'],
  ])('gives %j its name', (source, name) => {
    expect(isClusterSource(source)).toBe(true);
    expect(clusterSettings('masters[0]', source).name).toBe(name);
  });

  it.each<[unknown]>([
    ['redis://cluster:6379'],
    ['redis+sentinel://a,b/cluster'],
    ['/run/cluster.sock'],
    [undefined],
    [{}],
    [{ host: 'a' }],
    [{ host: 'a', cluster: undefined }],
    [{ cluster: () => 'a method of a client' }],
  ])('is not %j', (source) => expect(isClusterSource(source)).toBe(false));

  it.each([
    ['5', new Redis5({ lazyConnect })],
    ['6', new Redis({ lazyConnect })],
  ])('is not a client of one server of ioredis %s', (_, source) => {
    expect(source).toHaveProperty('cluster');
    expect(isClusterSource(source)).toBe(false);
  });

  it.each<[unknown, RegExp]>([
    ['redis+cluster://', / must list the nodes of a cluster as host:port, separated by commas/],
    ['redis+cluster://a,,b', / must list the nodes of a cluster as host:port/],
    ['redis+cluster://::1', / must list the nodes of a cluster as host:port/],
    ['redis+cluster://a;b', /\.cluster\[0\]\.host must be the name or address of a host alone/],
    ['redis+cluster://a,b:70000', /\.cluster\[1\]\.port must be from 1 to 65535, got 70000/],
    ['redis+cluster://a,redis+cluster://b', / must be one address: .* the scheme of a node only once/],
    ['redis+cluster://a/1', / must have no path: a cluster has no database but 0/],
    ['redis+cluster://a#x', / must have no fragment: .* %23/],
    ['redis+cluster://a?db=1', / must have no parameter but family, clusterNodeTimeout and batchPartitions/],
    ['redis+cluster://a?family=5', / must have 0, 4 or 6 as its family/],
    ['redis+cluster://a?clusterNodeTimeout=soon', /\.clusterNodeTimeout must be a whole number/],
    ['redis+cluster://a?clusterNodeTimeout=0', /\.clusterNodeTimeout must be from 1 to/],
    ['redis+cluster://u:100%@a', /.*%25/],
    ['redis-cluster://a', / must begin with redis\+cluster:\/\/ or rediss\+cluster:\/\//],
    ['redis+sentinel://a/m', / must begin with redis\+cluster:\/\/ or rediss\+cluster:\/\//],
    [{ cluster: [] }, /\.cluster must be a list of at least one node.*, got \[\]/],
    [{ cluster: 'a:1,b:2' }, /\.cluster must be a list of at least one node/],
    [{ cluster: ['a:1', ''] }, /\.cluster\[1\] must be host:port, a redis:\/\/ or rediss:\/\/ URL, or/],
    [{ cluster: ['a:1,b:2'] }, /\.cluster\[0\] must be host:port/],
    [{ cluster: ['redis+cluster://a'] }, /\.cluster\[0\] must be host:port/],
    [{ cluster: ['a:1', , 'b:2'] }, /\.cluster\[1\] must be host:port/], // eslint-disable-line no-sparse-arrays
    [{ cluster: [7000] }, /\.cluster\[0\] must be host:port.*, got 7000/],
    [{ cluster: ['/run/redis.sock'] }, /\.cluster\[0\]\.host must be the name or address of a host/],
    [{ cluster: [{ port: 1 }] }, /\.cluster\[0\]\.host must be a non-empty string/],
    [{ cluster: [{ host: 'a', port: '1' }] }, /\.cluster\[0\]\.port must be from 1 to 65535/],
    [{ cluster: [{ host: 'a', prot: 1 }] }, /\.cluster\[0\] may hold known options only .*port\?/],
    [{ cluster: [{ host: 'a', password: 'p' }] }, /\.cluster\[0\] may hold known options only/],
    [{ cluster: ['redis://a:1,b:2'] }, /\.cluster\[0\] must be one address/],
    [{ cluster: ['redis://a:x'] }, /\.cluster\[0\] must be a redis:\/\/ or rediss:\/\/ URL/],
    [{ cluster: ['redis://a/1'] }, /\.cluster\[0\] must have no database but 0/],
    [
      { cluster: ['redis://a', 'b', 'rediss://c'] },
      /\.cluster\[2\] must have the scheme.* of masters\[1\]\.cluster\[0\]/,
    ],
    [{ cluster: ['a', 'redis://:p@b', 'redis://c'] }, /\.cluster\[2\] must have the .* password .*\.cluster\[1\]/],
    [{ cluster: ['redis://u@a', 'redis://v@b'] }, /\.cluster\[1\] must have the .* user/],
    [{ cluster: ['redis://a?family=4', 'redis://b?family=6'] }, /\.cluster\[1\] must have the .* family/],
    [{ cluster: ['redis://:p@a'], password: 'q' }, /\.cluster\[0\] must have the user and password of the options/],
    [{ cluster: ['b', 'redis://:p@a'], username: 'u' }, /\.cluster\[1\] must have the user and password of the/],
    [{ cluster: ['a'], host: 'a' }, /\.host must be absent: the nodes are given as cluster/],
    [{ cluster: ['a'], sentinels: [{}] }, /\.sentinels must be absent/],
    [{ cluster: ['a'], db: 1 }, /\.db must be 0/],
    [{ cluster: ['a'], batchPartitions: 1 }, /\.batchPartitions must be true or false/],
    ['redis+cluster://a?batchPartitions=yes', /\.batchPartitions must be true or false/],
    [{ cluster: ['a'], durable: true }, /\.durable must be absent: a failover/],
    [{ cluster: ['a'], clusterNodeTimeout: -1 }, /\.clusterNodeTimeout must be from 1 to/],
    [{ cluster: ['a'], clusterNodeTimeout: '15' }, /\.clusterNodeTimeout must have a unit/],
    [{ cluster: ['a'], natMap: [] }, /\.natMap must be an object with the announced addresses as keys/],
    [{ cluster: ['a'], natMap: { a: at('b', 1) } }, /\.natMap must have keys of the form host:port, got "a"/],
    [{ cluster: ['a'], natMap: { 'redis://a:1': at('b', 1) } }, /\.natMap\["redis:\/\/a:1"\]\.host must be/],
    [{ cluster: ['a'], natMap: { 'a:1': 'b:1' } }, /\.natMap\["a:1"\]\.host must be a non-empty string/],
    [{ cluster: ['a'], natMap: { 'a:1': { host: 'b' } } }, /\.natMap\["a:1"\]\.port must be from 1/],
    [{ isCluster: true }, / must be a redis\+cluster:\/\/ or rediss\+cluster:\/\/ URL, options with the nodes/],
    [{ isCluster: true, options: {}, startupNodes: 'a' }, / must be a redis\+cluster:\/\/ or/],
  ])('is refused if it is wrong: %j', (source, message) => {
    expectRefusal(source, message);
  });

  it.each<[string, RedisClusterSource, RegExp]>([
    ['has no startup node', new Cluster([], { lazyConnect }), /\.cluster must be a list of at least one/],
    ['has a database', new Cluster(['redis://a/3'], { lazyConnect }), /\.cluster\[0\] must have no database/],
    ['has a database', new Cluster(['a'], { lazyConnect, redisOptions: { db: 3 } }), /\.db must be 0/],
    ['has a wrong port', new Cluster5([{ port: 70_000 }], { lazyConnect }), /\.cluster\[0\]\.port must be/],
    [
      'reads its nodes from DNS',
      new Cluster(['a'], { lazyConnect, useSRVRecords: true }),
      /.*useSRVRecords must be off/,
    ],
  ])('is refused if it is a client that %s', (_, source, message) => {
    expect(isClusterSource(source)).toBe(true);
    expectRefusal(source, message);
  });

  it('is refused if it cannot be read', () => {
    const source = {
      get cluster(): never {
        throw new Error('unreadable');
      },
    };
    expect(() => clusterSettings('masters[1]', source)).toThrow(/^masters\[1\] must be a redis\+cluster:\/\/ or/);
  });

  it.each<[unknown]>([
    ['redis+cluster://user:secret@a:x'],
    ['redis+cluster://user:se/cret@secret'],
    ['redis+cluster://user:pa?secret@a'],
    ['redis+cluster://user:secret@a,redis+cluster://user:secret@b'],
    ['redis+cluster://a?password=secret'],
    ['redis+cluster://user:1?clusterNodeTimeout=secret@a'],
    ['redis-cluster://user:secret@a'],
    [{ cluster: ['user:secret@a:1'] }],
    [{ cluster: ['redis://user:secret@a:70000'] }],
    [{ cluster: ['redis://user:secret@a', 'redis://user:secret2@b'] }],
    [{ cluster: ['redis://user:secret@a', 'b'], password: 'secret2' }],
    [{ cluster: 'redis://user:secret@a,redis://user:secret@b' }],
    [{ cluster: [{ host: 'a', password: 'secret' }] }],
    [{ cluster: [{ host: 'user:secret@a' }] }],
    [{ cluster: ['a'], host: 'redis://user:secret@a' }],
    [{ cluster: ['a'], natMap: { 'redis://user:secret@a:1': at('b', 1) } }],
    [{ cluster: ['a'], natMap: { 'redis://user:secret@a': at('b', 1) } }],
    [{ cluster: ['a'], natMap: { 'a:1': at('redis://user:secret@b', 1) } }],
  ])('never shows a password: %j', (source) => {
    try {
      clusterSettings('masters[0]', source);
      expect('an error').toBe('thrown');
    } catch (error) {
      expect(error).toBeInstanceOf(RedlockConfigError);
      expect(JSON.stringify([String(error), error])).not.toMatch(/secret/);
    }
  });

  it('has each seed node once, in the given order', () => {
    const { seeds } = clusterSettings('masters[0]', { cluster: ['B', '[::1]:7000', at('a', 1), 'b:6379'] });
    expect(seeds.map(({ host, port }) => `${host.toLowerCase()} ${port}`)).toEqual(['b 6379', '::1 7000', 'a 1']);
  });

  it.each<[Source, number | undefined]>([
    ['redis+cluster://a', undefined],
    ['redis+cluster://a?clusterNodeTimeout=15s', 15_000],
    ['redis+cluster://a?clusterNodeTimeout=1500', 1_500],
    [{ cluster: ['a'] }, undefined],
    [{ cluster: ['a'], clusterNodeTimeout: '2.5s' }, 2_500],
    [{ cluster: ['a'], clusterNodeTimeout: 1 }, 1],
  ])('gives the node timeout in milliseconds: %j', (source, nodeTimeout) =>
    expect(clusterSettings('masters[0]', source).nodeTimeout).toBe(nodeTimeout),
  );
});

describe('The client for a node of a cluster', () => {
  it('has the address of the node, the settings that a lock needs, and those of the user', () => {
    const options = clientOptions({
      ...{ cluster: ['a:1', 'b:2'], username: 'u', password: 'p', family: 6, connectionName: 'app', tls: { ca: 'x' } },
      ...{ enableOfflineQueue: true, keyPrefix: 'x:', commandTimeout: 5, maxRetriesPerRequest: 20, readOnly: true },
      ...{ clusterNodeTimeout: '15s', natMap: {}, host: undefined, path: null, sentinels: null },
    });
    expect(options).toMatchObject({
      ...{ host: 'node', port: 7000, db: 0, username: 'u', password: 'p', family: 6, connectionName: 'app' },
      ...{ tls: { ca: 'x' }, lazyConnect: true, enableOfflineQueue: false, keyPrefix: '', maxRetriesPerRequest: 0 },
      ...{ autoResendUnfulfilledCommands: false, readOnly: false, autoResubscribe: false },
    });
    expect(options.commandTimeout).toBeUndefined();
    for (const name of ['cluster', 'clusterNodeTimeout']) expect(options).not.toHaveProperty(name);
  });

  it('is not connected yet, and is another one at each call', () => {
    const { clientFor } = clusterSettings('masters[0]', 'redis+cluster://a');
    const [one, other] = [clientFor(at('::1', 1)), clientFor(at('b', 2))];
    expect([one, other]).toMatchObject([
      { status: 'wait', options: { host: '::1', port: 1 } },
      { status: 'wait', options: { host: 'b', port: 2 } },
    ]);
  });

  it.each<[Source, object]>([
    [{ cluster: ['a', 'redis://u:p%40@b', 'redis://u:p%40@c:1'] }, { username: 'u', password: 'p@' }],
    [{ cluster: ['redis://:p@a'], password: 'p' }, { password: 'p' }],
    [
      { cluster: ['redis://a'], username: 'u', password: 'p' },
      { username: 'u', password: 'p' },
    ],
    [{ cluster: ['a', 'redis://b?family=6'] }, { family: 6 }],
    ['redis+cluster://u:p%40%3A@a,b', { username: 'u', password: 'p@:' }],
    ['redis+cluster://:p:q@r@a,b?family=6', { username: '', password: 'p:q@r', family: 6 }],
  ])('has the login and the family of the URLs: %j', (source, settings) =>
    expect(clientOptions(source)).toMatchObject(settings),
  );

  it.each<[Source, object | undefined]>([
    ['redis+cluster://a', undefined],
    ['rediss+cluster://a', {}],
    [{ cluster: ['a'] }, undefined],
    [{ cluster: ['redis://a'], tls: { servername: 's' } }, { servername: 's' }],
    [{ cluster: ['rediss://a', 'rediss://b'] }, {}],
    [{ cluster: ['rediss://a'], tls: { servername: 's' } }, { servername: 's' }],
    [{ cluster: ['RedisS://a'], tls: undefined }, {}],
  ] as [Source, object | undefined][])('uses TLS if the scheme or the options say so: %j', (source, tls) => {
    expect(clusterSettings('masters[0]', source).usesTls).toBe(tls !== undefined);
    expect(clientOptions(source).tls).toEqual(tls);
  });

  it.each(versions)('copies the settings of an ioredis %s Cluster, which is not used itself', (_, cluster) => {
    const client = cluster(
      [...['redis://a:1', 'b', '[::1]:2', '7003'], 7004, { port: 7005 }, { host: 'c' }, { host: 'd', port: 6 }],
      {
        ...{ scaleReads: 'all', keyPrefix: 'x:', natMap: { 'e:1': at('f', 2) } },
        redisOptions: { username: 'u', password: 'p', connectionName: 'app', family: 6, keyPrefix: 'x:' },
      },
    );
    expect(isClusterSource(client)).toBe(true);
    const { name, seeds, translate, nodeTimeout, usesTls } = clusterSettings('masters[0]', client);
    expect({ nodeTimeout, usesTls }).toEqual({ nodeTimeout: undefined, usesTls: false });
    expect(name).toBe('cluster of 127.0.0.1:7003, 127.0.0.1:7004, 127.0.0.1:7005, [::1]:2, a:1, b:6379, c:6379, d:6');
    expect(seeds).toEqual([
      ...[at('a', 1), at('b', 6379), at('::1', 2), at('127.0.0.1', 7003)],
      ...[at('127.0.0.1', 7004), at('127.0.0.1', 7005), at('c', 6379), at('d', 6)],
    ]);
    expect(translate(at('e', 1))).toEqual(at('f', 2));
    expect(clientOptions(client)).toMatchObject({
      ...{ host: 'node', port: 7000, username: 'u', password: 'p', connectionName: 'app', family: 6, keyPrefix: '' },
      ...{ enableOfflineQueue: false, readOnly: false },
    });
    expect(client).toMatchObject({ status: 'wait' });
  });

  it.each(versions)('uses TLS if an ioredis %s Cluster does', (_, cluster) => {
    const client = cluster(['a'], { redisOptions: { tls: { servername: 's' } } });
    expect(clusterSettings('masters[0]', client).usesTls).toBe(true);
    expect(clientOptions(client).tls).toEqual({ servername: 's' });
  });

  it.each(versions)('has the settings that startup nodes of an ioredis %s Cluster have', (_, cluster) => {
    const nodes = [
      { host: 'a', password: 'p', db: 3 },
      { host: 'b', port: '7001', tls: {}, password: undefined },
    ] as object[];
    const client = cluster(nodes, { redisOptions: { username: 'u', password: 'q', ...{ host: 'x', port: 1 } } });
    expect(clusterSettings('masters[0]', client).seeds).toEqual([at('a', 6379), at('b', 7001)]);
    expect(clientOptions(client)).toMatchObject({ username: 'u', password: 'p', tls: {}, db: 0, host: 'node' });
  });
});

describe('The address of a node', () => {
  const translate = (natMap: unknown, address: NodeAddress): NodeAddress =>
    clusterSettings('masters[1]', { cluster: ['a'], natMap }).translate(address);

  const natMap: RedisClusterNatMap = {
    '10.0.0.1:7000': at('example.com', 1),
    'Node-2:7000': at('example.com', 2),
    '::3:7000': at('example.com', 3),
    '[::4]:7000': at('::1', 4),
  };

  it.each([
    [at('10.0.0.1', 7000), at('example.com', 1)],
    [at('node-2', 7000), at('example.com', 2)],
    [at('::3', 7000), at('example.com', 3)],
    [at('::4', 7000), at('::1', 4)],
    [at('10.0.0.1', 7001), at('10.0.0.1', 7001)],
    [at('example.com', 1), at('example.com', 1)],
  ])('is translated by an object: %j', (announced, used) => expect(translate(natMap, announced)).toEqual(used));

  it.each([undefined, null, {}])('is the announced one without an entry in %j', (none) =>
    expect(translate(none, at('10.0.0.1', 7000))).toEqual(at('10.0.0.1', 7000)),
  );

  it('is translated by a function, which gets and returns what ioredis would', () => {
    const targets: Readonly<Record<string, NodeAddress | null>> = {
      'A:7000': at('b', 1),
      '::1:7000': at('c', 2),
      'd:1': null,
    };
    const byFunction = (announced: string): NodeAddress | null | undefined => targets[announced];
    expect(translate(byFunction, at('A', 7000))).toEqual(at('b', 1));
    expect(translate(byFunction, at('::1', 7000))).toEqual(at('c', 2));
    expect(translate(byFunction, at('d', 1))).toEqual(at('d', 1));
    expect(translate(byFunction, at('e', 1))).toEqual(at('e', 1));
    expect(translate(byFunction, at('?', 1))).toEqual(at('?', 1));
  });

  it.each<[unknown, RegExp]>([
    ['b:1', /^masters\[1\]\.natMap\("a:7000"\)\.host must be a non-empty string/],
    [{ host: 'b' }, /^masters\[1\]\.natMap\("a:7000"\)\.port must be from 1 to 65535/],
  ])('is refused if a function returns %j', (target, message) => {
    expect(() => translate(() => target, at('a', 7000))).toThrow(message);
    expect(() => translate(() => target, at('a', 7000))).toThrow(RedlockConfigError);
  });
});

it.each<[unknown, boolean]>([
  [{ cluster: ['a'] }, false],
  [{ cluster: ['a'], batchPartitions: true }, true],
  ['redis+cluster://a', false],
  ['redis+cluster://a?batchPartitions=true', true],
  ['redis+cluster://a?batchPartitions=false', false],
])('Whether partitions share commands is read from %j', (source, isBatched) =>
  expect(clusterSettings('masters[0]', source).batchesPartitions).toBe(isBatched),
);
