import { describe, expect, it } from '@jest/globals';
import {
  announcementOf,
  markArguments,
  MARKER_FIELDS,
  type MarkerField,
  markerFrom,
} from '../../../lib/redis/guard/marker.js';
import { faultOf, INFO_FIELDS, type InfoField, parseInfo, parseServerIdentity } from '../../../lib/redis/replies.js';

const TIME = 1_700_000_000_123;
const INFO: Partial<Record<InfoField, string>> = {
  ...{ redis_version: '7.0.15', redis_mode: 'standalone', run_id: 'abc', uptime_in_seconds: '12' },
  ...{ role: 'master', connected_slaves: '2', master_replid: 'def', master_replid2: '0'.repeat(40) },
  ...{ maxmemory: '0', maxmemory_policy: 'allkeys-lru', aof_enabled: '1' },
};

function report(info: Partial<Record<InfoField, string>> = INFO, marker: Partial<Record<MarkerField, string>> = {}) {
  const values = INFO_FIELDS.map((field) => info[field] ?? '');
  return parseServerIdentity([String(TIME), ...values, ...MARKER_FIELDS.map((field) => marker[field] ?? '')]);
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
        known: '30000',
      },
      ...{ ttls: `30000:${TIME + 1}`, by: 'host:1', at: '1690000000000', why: 'it was restarted' },
      ...{ generation: 'abc@1690000000000', first: '1' },
    };
    expect(report(INFO, fields).marker).toEqual({
      ...{
        run: 'abc',
        replid: 'def',
        nonce: 'nonce',
        from: 1_700_000_000_000,
        isVetoed: true,
        isGuess: true,
      },
      ...{
        wait: 10_000_000_000,
        maxTtl: 30_000,
        storedTtl: 30_000,
        knownTtl: 30_000,
        writtenBy: 'host:1',
        writtenAt: 1_690_000_000_000,
      },
      ...{ generation: 'abc@1690000000000', isFirst: true, wasEmpty: true },
      ...{ reason: 'it was restarted', raw: MARKER_FIELDS.map((field) => fields[field]).join('\n') },
    });
  });

  it('contains the largest announced ttl that still counts', () => {
    const ttls = [announcementOf(90_000, TIME), announcementOf(30_000, TIME + 1), announcementOf(10_000, TIME + 5_000)];
    expect(report(INFO, { nonce: 'nonce', ttls: ttls.join(' ') }).marker).toMatchObject({ maxTtl: 30_000 });
    expect(report(INFO, { nonce: 'nonce', ttls: '' }).marker).toMatchObject({ maxTtl: 0 });
  });

  it('contains no marker without a nonce', () =>
    expect(report(INFO, { run: 'abc', from: '1700000000000' }).marker).toBeUndefined());

  it('may be empty if INFO is denied', () => {
    const empty = report({});
    expect(empty).toMatchObject({ run: '', replid: '', replicas: 0, uptime: 0 });
    expect(empty).toMatchObject({ wasPromoted: false, hasAppendOnlyFile: false });
    expect(faultOf(empty)).toBeUndefined();
  });

  it('can be read from the answer to INFO by a user without the permission for scripts', () => {
    const lines = Object.entries(INFO).map(([name, value]) => `${name}:${value}`);
    const info = ['# Server', ...lines, '', '# Keyspace', 'db0:keys=1,expires=0', ''].join('\r\n');
    expect(parseInfo(info, TIME)).toEqual(report());
  });

  it('shows that the server was a replica', () =>
    expect(report({ ...INFO, master_replid2: '0a'.repeat(20) }).wasPromoted).toBe(true));

  it.each([
    ['allkeys-lru', 100, 'allkeys-lru'],
    ['volatile-ttl', 100, 'volatile-ttl'],
    ['noeviction', 100, undefined],
    ['allkeys-lru', 0, undefined],
  ])('shows what the server evicts when its memory is full: %s with a limit of %d', (policy, limit, eviction) =>
    expect(report({ maxmemory: String(limit), maxmemory_policy: policy }).eviction).toBe(eviction),
  );

  it('contains the version of Valkey, not the version that Valkey imitates', () => {
    expect(report({ redis_version: '7.2.4', valkey_version: '8.0.1', server_mode: 'cluster' })).toMatchObject({
      ...{ version: '8.0.1', mode: 'cluster' },
    });
  });
});

// Protocol 8.10
describe('A server that must not vote', () => {
  it.each([
    ['a replica', { role: 'slave' }, /replica/],
    ['a cluster node', { redis_mode: 'cluster' }, /cluster/],
    ['one that is too old', { redis_version: '6.0.16' }, /6\.0\.16 is older than 7\.0: upgrade the server/],
    ['the last version that is too old', { redis_version: '6.2.16' }, /^its version 6\.2\.16 is older than 7\.0: /],
    ['one that is much too old', { redis_version: '5.0.0' }, /5\.0\.0/],
  ])('is %s', (_, parts, reason) => expect(faultOf(report(parts))).toMatch(reason));

  it.each(['7.0.0', '7.0.15', '8.0.2'])('is not one of version %s', (version) =>
    expect(faultOf(report({ redis_version: version }))).toBeUndefined(),
  );
});

const values = MARKER_FIELDS.map((field) => `a ${field}`);
const server = { run: 'run', replid: 'history', time: 5, marker: markerFrom(values, 0) };
const blank = (...names: string[]): string =>
  MARKER_FIELDS.map((field, index) => (names.includes(field) ? '' : values[index])).join('\n');

describe('markerFrom', () => {
  it('finds no marker where there is no nonce', () =>
    expect([markerFrom([], 0), markerFrom(['run', 'history', '', '5'], 0)]).toEqual([undefined, undefined]));

  it('takes an absent field for an empty one', () => {
    expect(markerFrom(['', '', 'nonce'], 0)).toMatchObject({
      ...{ run: '', replid: '', nonce: 'nonce', isVetoed: false, isGuess: false, maxTtl: 0, storedTtl: 0 },
      ...{ writtenBy: '' },
    });
  });
});

describe('markArguments', () => {
  it('does not compare announcements, which change all the time, for a change that leaves them as they are', () =>
    expect(markArguments(server, { vetoed: 1 })).toEqual([
      'run',
      'history',
      5,
      0,
      blank('ttls', 'known'),
      'vetoed',
      1,
    ]));

  it('compares announcements for a change that replaces them', () => {
    expect(markArguments(server, { ttls: '', from: 9 })).toEqual([
      'run',
      'history',
      5,
      1,
      blank(),
      'ttls',
      '',
      'from',
      9,
    ]);
  });

  it('expects no marker where there was none, and any time where the reading has none', () => {
    const args = markArguments({ ...server, time: undefined, marker: undefined }, { from: 9 });
    expect(args.slice(2)).toEqual(['', 1, '\n'.repeat(MARKER_FIELDS.length - 1), 'from', 9]);
  });
});
