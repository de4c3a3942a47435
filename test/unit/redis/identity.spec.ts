import { describe, expect, it } from '@jest/globals';
import { faultOf, INFO_FIELDS, type InfoField, parseInfo, parseServerIdentity } from '../../../lib/redis/replies.js';

const TIME = 1_700_000_000_123;
const INFO: Partial<Record<InfoField, string>> = {
  ...{ redis_version: '7.0.15', redis_mode: 'standalone', run_id: 'abc', uptime_in_seconds: '12' },
  ...{ role: 'master', maxmemory: '0', maxmemory_policy: 'allkeys-lru' },
};
const NO_MARKER = { run: '', from: '', wait: 0, cause: '' };

function report(info: Partial<Record<InfoField, string>> = INFO, ...gate: string[]) {
  return parseServerIdentity([String(TIME), ...INFO_FIELDS.map((field) => info[field] ?? ''), ...gate]);
}

describe('The report of a server', () => {
  it('identifies the server', () => {
    expect(report()).toEqual({
      ...{ run: 'abc', version: '7.0.15', uptime: 12_000, role: 'master', mode: 'standalone' },
      ...{ eviction: undefined, time: TIME, gate: NO_MARKER },
    });
  });

  it('contains what the gate says: the marker, the wait, and why the marker was written', () =>
    expect(report(INFO, 'abc', '1700000009923', '9800', 'restart').gate).toEqual({
      ...{ run: 'abc', from: '1700000009923', wait: 9_800, cause: 'restart' },
    }));

  it('may be empty if INFO is denied, which only the restart guard does not permit', () => {
    const empty = report({});
    expect(empty).toMatchObject({ run: '', uptime: 0, gate: NO_MARKER });
    expect(faultOf(empty)).toBeUndefined();
    expect(faultOf(empty, true)).toMatch(/may not use INFO .*restart guard.*\+info, or restartGuard: false$/);
    expect(faultOf(report(), true)).toBeUndefined();
  });

  it('can be read from the answer to INFO by a user without the permission for scripts', () => {
    const lines = Object.entries(INFO).map(([name, value]) => `${name}:${value}`);
    const info = ['# Server', ...lines, '', '# Keyspace', 'db0:keys=1,expires=0', ''].join('\r\n');
    expect(parseInfo(info, TIME)).toEqual(report());
  });

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

// Protocol 8.4
describe('A server that must not vote', () => {
  it.each([
    ['a replica', { role: 'slave' }, /replica/],
    ['a cluster node', { redis_mode: 'cluster' }, /cluster/],
    ['the last version that is too old', { redis_version: '6.2.16' }, /^its version 6\.2\.16 is older than 7\.0: /],
  ])('is %s', (_, parts, reason) => expect(faultOf(report(parts))).toMatch(reason));
});
