import { describe, expect, it } from '@jest/globals';
import { faultOf, reportOf } from '../../../lib/redis/identity.js';

const SERVER = '# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:12\r\n';
const REPLICATION = `# Replication\r\nrole:master\r\nmaster_replid2:${'0'.repeat(40)}\r\n`;
const MEMORY = '# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n';

function report(parts: Partial<Record<'server' | 'replication' | 'memory', string>> = {}, marker = ['', '', '', '']) {
  const { server = SERVER, replication = REPLICATION, memory = MEMORY } = parts;
  return reportOf([server, replication, memory, '1700000000123', ...marker]);
}

describe('The report of a server', () => {
  it('tells who it is', () => {
    expect(report()).toEqual({
      ...{ run: 'abc', version: '7.0.15', uptime: 12_000, role: 'master', wasPromoted: false, mode: 'standalone' },
      ...{ eviction: undefined, time: 1_700_000_000_123, marker: undefined },
    });
  });

  it('tells its marker', () => {
    expect(report({}, ['abc', 'nonce', '1700000000000', '30000']).marker).toEqual({
      ...{ run: 'abc', nonce: 'nonce', from: 1_700_000_000_000, maxTtl: 30_000 },
    });
  });

  it('may be empty, where INFO is denied', () => {
    const empty = report({ server: '', replication: '', memory: '' });
    expect(empty).toMatchObject({ run: undefined, uptime: 0, wasPromoted: false });
    expect(faultOf(empty)).toBeUndefined();
  });

  it('tells that it was a replica', () => {
    const replication = `role:master\r\nmaster_replid2:${'0a'.repeat(20)}\r\n`;
    expect(report({ replication }).wasPromoted).toBe(true);
  });

  it.each([
    ['allkeys-lru', 100, 'allkeys-lru'],
    ['volatile-ttl', 100, 'volatile-ttl'],
    ['noeviction', 100, undefined],
    ['allkeys-lru', 0, undefined],
  ])('tells what is dropped when its memory is full: %s with a limit of %d', (policy, limit, eviction) => {
    expect(report({ memory: `maxmemory:${limit}\r\nmaxmemory_policy:${policy}\r\n` }).eviction).toBe(eviction);
  });

  it('tells the version of Valkey and not the one that it imitates', () => {
    expect(report({ server: 'redis_version:7.2.4\r\nvalkey_version:8.0.1\r\nserver_mode:cluster\r\n' })).toMatchObject({
      ...{ version: '8.0.1', mode: 'cluster' },
    });
  });
});

describe('A server that must not vote', () => {
  it.each([
    ['a replica', { replication: 'role:slave\r\n' }, /replica/],
    ['a cluster node', { server: 'redis_mode:cluster\r\n' }, /cluster/],
    ['one that is too old', { server: 'redis_version:6.0.16\r\n' }, /6\.0\.16 is older than 7\.0: upgrade the server/],
    [
      'the last version that is too old',
      { server: 'redis_version:6.2.16\r\n' },
      /^its version 6\.2\.16 is older than 7\.0: /,
    ],
    ['one that is much too old', { server: 'redis_version:5.0.0\r\n' }, /5\.0\.0/],
  ])('%s', (_, parts, reason) => {
    expect(faultOf(report(parts))).toMatch(reason);
  });

  it.each(['7.0.0', '7.0.15', '8.0.2'])('is not one of version %s', (version) => {
    expect(faultOf(report({ server: `redis_version:${version}\r\n` }))).toBeUndefined();
  });
});
