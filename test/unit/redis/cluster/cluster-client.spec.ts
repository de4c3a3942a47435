import { describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { RedlockConfigError } from '../../../../lib/settings/config.error.js';
import { clusterClient, isClusterSource } from '../../../../lib/redis/cluster/cluster-client.js';
import { placeholderClusterUrlOf } from '../../../../lib/redis/doctor-command.js';

const LAZY = { lazyConnect: true };

describe('A cluster', () => {
  it.each<[unknown, string]>([
    ['REDISS+Cluster://user:secret@A,[::1]:7/0?family=6', 'cluster of [::1]:7, a:6379'],
    [{ cluster: ['B:1', 'redis://a', { host: 'c', port: 2 }, '[::1]'] }, 'cluster of [::1]:6379, a:6379, b:1, c:2'],
    [
      new Cluster(['redis://127.0.0.1:1', { port: 2, host: 'six' }, 3], LAZY),
      'cluster of 127.0.0.1:1, 127.0.0.1:3, six:2',
    ],
  ])('is named after its nodes: %j', (source, name) => {
    expect(isClusterSource(source)).toBe(true);
    expect(clusterClient('masters[0]', source).name).toBe(name);
  });

  it.each<[unknown, object]>([
    ['rediss+cluster://u:p%40@a?family=6', { username: 'u', password: 'p@', family: 6, tls: {} }],
    [{ cluster: ['rediss://u:p@a:1', 'b'] }, { username: 'u', password: 'p', tls: {} }],
    [
      { cluster: ['a'], password: 'p', tls: { ca: 'x' } },
      { password: 'p', tls: { ca: 'x' } },
    ],
    [new Cluster(['a:1'], { ...LAZY, redisOptions: { password: 'p' } }), { password: 'p' }],
  ])('has the settings of %j at all nodes, and those that locks need', (source, settings) =>
    expect(clusterClient('masters[0]', source)).toMatchObject({
      options: { ...settings, maxRetriesPerRequest: 0, keyPrefix: '' },
      cluster: {
        options: { enableOfflineQueue: false, retryDelayOnFailover: 0, scaleReads: 'master' },
        status: 'wait',
      },
    }),
  );

  it('keeps the translation of addresses', () => {
    const natMap = { '10.0.0.1:6379': { host: 'a', port: 1 } };
    const given = clusterClient('masters[0]', { cluster: ['a:1'], natMap });
    const copied = clusterClient('masters[0]', new Cluster(['a:1'], { ...LAZY, natMap }));
    expect([given.cluster.options.natMap, copied.cluster.options.natMap]).toEqual([natMap, natMap]);
  });

  it.each<[unknown, RegExp]>([
    ['redis+cluster://', / must list the nodes of a cluster as host:port/],
    ['redis-cluster://a', / must begin with redis\+cluster:\/\/ or rediss\+cluster:\/\//],
    ['redis+cluster://a/1', / must have no path: a cluster has no database but 0/],
    ['redis+cluster://a?password=secret', / must have no parameter but family and db: write user and password/],
    ['redis+cluster://a:0', /.*port must be from 1 to 65535/],
    [{ cluster: [] }, /\.cluster must be a list of at least one node/],
    [{ cluster: [null] }, /\.cluster\[0\] must be host:port/],
    [{ cluster: ['http://a'] }, /\.cluster\[0\] must be host:port/],
    [{ cluster: ['a'], port: 1 }, /\.port must be absent: the nodes are given as cluster/],
  ])('cannot be %j', (source, message) => {
    const attempt = (): unknown => clusterClient('masters[1]', source);
    expect(attempt).toThrow(RedlockConfigError);
    expect(attempt).toThrow(message);
    expect(attempt).not.toThrow(/secret/);
  });

  it('has an address for the command line without its password', () =>
    expect(placeholderClusterUrlOf(clusterClient('masters[0]', 'rediss+cluster://app:secret@a:1,[::1]:7'))).toBe(
      'rediss+cluster://USER:PASSWORD@a:1,[::1]:7',
    ));
});
