import { describe, expect, it } from '@jest/globals';
import { faultOf, reportOf } from '../../../lib/redis/identity.js';
import { announcementOf, MARKER_FIELDS, type MarkerField } from '../../../lib/redis/guard/marker.js';

const SERVER = '# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:12\r\n';
const REPLICATION = `# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmaster_replid:def\r\nmaster_replid2:${'0'.repeat(40)}\r\n`;
const PERSISTENCE = '# Persistence\r\naof_enabled:1\r\n';
const TIME = 1_700_000_000_123;
const MEMORY = '# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n';

function report(
  parts: Partial<Record<'server' | 'replication' | 'memory' | 'persistence', string>> = {},
  marker: Partial<Record<MarkerField, string>> = {},
) {
  const { server = SERVER, replication = REPLICATION, memory = MEMORY, persistence = PERSISTENCE } = parts;
  const fields = MARKER_FIELDS.map((field) => marker[field] ?? '');
  return reportOf([server, replication, memory, persistence, String(TIME), ...fields]);
}

describe('The report of a server', () => {
  it('identifies the server', () => {
    expect(report()).toEqual({
      ...{ run: 'abc', version: '7.0.15', uptime: 12_000, role: 'master', wasPromoted: false, mode: 'standalone' },
      ...{ replid: 'def', replicas: 2, hasAppendOnlyFile: true, eviction: undefined, time: TIME, marker: undefined },
    });
  });

  it('contains the marker', () => {
    const fields = {
      ...{
        run: 'abc',
        replid: 'def',
        nonce: 'nonce',
        from: '1700000000000',
        vetoed: '1',
        guess: '1',
        durable: '1',
        known: '30000',
      },
      ...{ ttls: `30000:${TIME + 1}`, by: 'host:1', at: '1690000000000', why: 'it was restarted' },
    };
    expect(report({}, fields).marker).toEqual({
      ...{
        run: 'abc',
        replid: 'def',
        nonce: 'nonce',
        from: 1_700_000_000_000,
        isVetoed: true,
        isGuess: true,
        isDurable: true,
      },
      ...{
        wait: 10_000_000_000,
        maxTtl: 30_000,
        storedTtl: 30_000,
        knownTtl: 30_000,
        writtenBy: 'host:1',
        writtenAt: 1_690_000_000_000,
      },
      ...{ reason: 'it was restarted', raw: MARKER_FIELDS.map((field) => fields[field]).join('\n') },
    });
  });

  it('contains the largest announced ttl that still counts', () => {
    const ttls = [announcementOf(90_000, TIME), announcementOf(30_000, TIME + 1), announcementOf(10_000, TIME + 5_000)];
    expect(report({}, { nonce: 'nonce', ttls: ttls.join(' ') }).marker).toMatchObject({ maxTtl: 30_000 });
    expect(report({}, { nonce: 'nonce', ttls: '' }).marker).toMatchObject({ maxTtl: 0 });
  });

  it('contains no marker without a nonce', () => {
    expect(report({}, { run: 'abc', from: '1700000000000' }).marker).toBeUndefined();
  });

  it('may be empty if INFO is denied', () => {
    const empty = report({ server: '', replication: '', memory: '', persistence: '' });
    expect(empty).toMatchObject({ run: '', replid: '', replicas: 0, uptime: 0 });
    expect(empty).toMatchObject({ wasPromoted: false, hasAppendOnlyFile: false });
    expect(faultOf(empty)).toBeUndefined();
  });

  it('shows that the server was a replica', () => {
    const replication = `role:master\r\nmaster_replid2:${'0a'.repeat(20)}\r\n`;
    expect(report({ replication }).wasPromoted).toBe(true);
  });

  it.each([
    ['allkeys-lru', 100, 'allkeys-lru'],
    ['volatile-ttl', 100, 'volatile-ttl'],
    ['noeviction', 100, undefined],
    ['allkeys-lru', 0, undefined],
  ])('shows what the server evicts when its memory is full: %s with a limit of %d', (policy, limit, eviction) => {
    expect(report({ memory: `maxmemory:${limit}\r\nmaxmemory_policy:${policy}\r\n` }).eviction).toBe(eviction);
  });

  it('contains the version of Valkey, not the version that Valkey imitates', () => {
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
  ])('is %s', (_, parts, reason) => {
    expect(faultOf(report(parts))).toMatch(reason);
  });

  it.each(['7.0.0', '7.0.15', '8.0.2'])('is not one of version %s', (version) => {
    expect(faultOf(report({ server: `redis_version:${version}\r\n` }))).toBeUndefined();
  });
});
