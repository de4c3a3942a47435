import { describe, expect, it } from '@jest/globals';
import { type Examination, offsetOf } from '../../../lib/admin/examination.js';
import { judge, type Verdict } from '../../../lib/admin/findings.js';
import type { GateReport, ServerIdentity } from '../../../lib/redis/replies.js';

type Persistence = NonNullable<Examination['persistence']>;
type Finding = Verdict['findings'][number];

const DAY = 86_400_000;

/** Current time of the servers. */
const NOW = 1_000_000;

/** The gate of a server that has voted for long, whose run is named after its master. */
function gate(run: string, of: Partial<GateReport> = {}): GateReport {
  return { run, from: '5', wait: 0, cause: '', ...of };
}

const NO_MARKER = gate('', { from: '' });

function report(run: string, of: Partial<ServerIdentity> = {}): ServerIdentity {
  return {
    ...{ run, version: '7.2.0', role: 'master', mode: 'standalone', eviction: undefined, uptime: DAY, time: NOW },
    ...{ gate: gate(run), ...of },
  };
}

/** A master without problems, except for the given properties. */
function examination(name: string, of: Partial<Examination> = {}): Examination {
  return {
    ...{ master: name, unreachable: undefined, report: report(name), fault: undefined, missing: [] },
    ...persistent({ fsync: 'everysec' }),
    ...{ refusal: undefined, clock: { min: -1, max: 1 }, latency: { fastest: 0.2, median: 0.3 } },
    ...of,
  };
}

/** A master whose report has some properties. */
function reporting(name: string, of: Partial<ServerIdentity>): Examination {
  return examination(name, { report: report(name, of) });
}

/** A master that waits for some milliseconds. */
function waiting(name: string, wait: number): Examination {
  return reporting(name, { gate: gate(name, { from: String(NOW + wait) }) });
}

/** How a master stores its data, by default as few losses as a disk allows. */
function persistent(of: Partial<Persistence> = {}): { persistence: Persistence } {
  return { persistence: { appendOnly: true, fsync: 'always', snapshots: false, failing: false, ...of } };
}

const ALL = ['a', 'b', 'c'];

/** Two masters without problems, and one with the given properties. */
function beside(of: Partial<Examination>): Examination[] {
  return [examination('a', of), examination('b'), examination('c')];
}

function brief(findings: readonly Finding[]): unknown[] {
  return findings.map(({ level, master, what }) => [level, master, what]);
}

describe('The verdict', () => {
  it('has no findings for three good masters', () => {
    expect(judge(beside({}))).toEqual({ healthy: true, masters: 3, quorum: 2, voters: ALL, locksIn: 0, findings: [] });
  });

  it('is healthy with notes only: one master, an even number, no guard and no persistence', () => {
    const forgetful = persistent({ fsync: 'everysec', snapshots: true });
    const one = judge([examination('a', forgetful)]);
    const four = judge([...beside({}), examination('d')]);
    expect([one.healthy, four.healthy]).toEqual([true, true]);
    expect(brief(one.findings)).toEqual([
      ['note', undefined, 'one master is a single point of failure'],
      ['note', undefined, expect.stringContaining('forgets its locks')],
    ]);
    expect(one.findings[1]?.advice).toMatch(/restartGuard: true.*for maxTtl after a restart.*fencing tokens/);
    expect(brief(four.findings)).toEqual([['note', undefined, '4 masters survive no more failures than 3']]);
    expect(judge([examination('a', persistent())]).findings).toHaveLength(1);
    expect(judge(beside(forgetful)).findings).toEqual([]);
  });

  it('does not advise the restart guard for a cluster or a Sentinel group, whose failovers lose locks', () => {
    const { findings } = judge([examination('group', { isGroup: true, ...persistent({ snapshots: true }) })]);
    const advice = findings.map((one) => one.advice).join();
    expect([advice.includes('fencing tokens'), advice.includes('restartGuard: true')]).toEqual([true, false]);
  });

  const clockIs = (how: string): unknown[] => ['problem', 'a', `its clock is ${how} the others`];

  it.each<[string, Examination[], unknown[]]>([
    ['ahead', beside({ clock: { min: 1_500, max: 1_510 } }), clockIs('1.5 s ahead of')],
    ['behind', beside({ clock: { min: -90_010, max: -90_001 } }), clockIs('90.0 s behind')],
    ['neither, as far as a slow network shows', beside({ clock: { min: -20_000, max: 20_000 } }), []],
    [
      'that of this machine',
      ALL.map((name) => examination(name, { clock: { min: 4_990, max: 5_010 } })),
      ['note', undefined, 'the clock of this machine is 5.0 s behind the masters'],
    ],
  ])('reports a clock that is certainly wrong: %s', (_, masters, finding) => {
    const { healthy, findings, voters } = judge(masters);
    expect(brief(findings)).toEqual(finding.length === 0 ? [] : [finding]);
    expect(healthy).toBe(finding[0] !== 'problem');
    expect(voters).toEqual(ALL);
  });

  it('does not count a waiting master until the time of its server passes that of its marker', () => {
    const at = (time: number): unknown[] => {
      const of = { time, gate: gate('a', { from: String(NOW + 4_000) }) };
      const { healthy, voters, findings } = judge(beside({ report: report('a', of) }));
      return [healthy, voters, brief(findings)];
    };
    expect(at(NOW)).toEqual([true, ['b', 'c'], [['note', 'a', 'it waits 4.0 s before it votes']]]);
    expect(at(NOW + 4_000)).toEqual([true, ['a', 'b', 'c'], []]);
  });

  it.each<[string, GateReport, string]>([
    ['without a marker', NO_MARKER, 'no process has connected to it yet'],
    ['with the marker of an earlier run', gate('before'), 'it was restarted, and no process has connected to it since'],
  ])('does not count a master %s, and writes none for the answer', (_, of, reason) => {
    const { voters, findings } = judge(beside({ report: report('a', { gate: of }) }));
    expect(voters).toEqual(['b', 'c']);
    expect(brief(findings)).toEqual([['note', 'a', reason]]);
    expect(findings[0]?.advice).toBe('the first process that does begins its wait, which lasts for maxTtl');
  });

  it('has a problem while fewer than a quorum vote, until the last member of a quorum has waited', () => {
    const { healthy, voters, locksIn, findings } = judge([
      waiting('a', 9_000),
      waiting('b', 4_000),
      waiting('c', 20_000),
    ]);
    expect([healthy, voters, locksIn]).toEqual([false, [], 9_000]);
    expect(findings.at(-1)).toMatchObject({
      ...{ level: 'problem', what: 'no lock can be taken for 9.0 s: 0 of 3 masters vote now, 2 must' },
      advice: expect.stringContaining('wait'),
    });
  });

  it('requires markers only where applications have a guard: with three masters or a marker, unless disabled', () => {
    const [a, b, c] = ALL.map((name) => reporting(name, { gate: NO_MARKER }));
    const young = waiting('b', 9_000);
    expect(judge([a!]).voters).toEqual(['a']);
    expect(judge([a!, young]).voters).toEqual([]);
    expect(judge([a!, b!, c!]).voters).toEqual([]);
    expect(judge([a!, young, c!], { guarded: false })).toMatchObject({ healthy: true, findings: [], locksIn: 0 });
  });

  it('does not count a master that refuses, lacks a vital permission, or votes already under another name', () => {
    const refusal = { code: 'OOM', reason: 'no memory' };
    expect(judge(beside({ refusal })).voters).toEqual(['b', 'c']);
    const { locksIn, findings } = judge(ALL.map((name) => examination(name, name === 'c' ? {} : { refusal })));
    expect([locksIn, findings.length]).toEqual([null, 2]);
    expect(judge(beside({ missing: [{ rule: '+get', disabled: false }] })).voters).toEqual(['b', 'c']);
    const slower = judge(beside({ missing: [{ rule: '+publish', disabled: false }] }));
    expect([slower.healthy, slower.voters.length]).toEqual([false, 3]);
    expect(judge([...beside({}), examination('d', { report: report('a') })]).voters).toEqual(['a', 'b', 'c']);
    // Masters that do not reveal their run may be different servers.
    const silent = { report: report('', { gate: NO_MARKER }) };
    const hidden = [examination('a', silent), examination('b', silent), examination('c')];
    expect(judge(hidden, { guarded: false })).toMatchObject({ healthy: true, voters: ALL });
  });

  it('does not count a master whose user lacks INFO where applications have a guard', () => {
    const missing = [{ rule: '+info', disabled: false }];
    const [guarded, open] = [true, false].map((each) => judge(beside({ missing }), { guarded: each }));
    expect([guarded!.voters, open!.voters]).toEqual([['b', 'c'], ALL]);
    expect(guarded!.findings[0]?.what).toBe('its user lacks +info: locks fail on it');
    expect(open!.findings[0]?.what).toMatch(/^its user lacks \+info: locks work, but /);
  });

  it.each<[string, Partial<ServerIdentity>, string]>([
    ['it is a replica', { role: 'slave' }, 'give the address of a master; replicas add no vote, and none is needed'],
    [
      'it is a node of a cluster',
      { mode: 'cluster' },
      'give the whole cluster as one master: redis+cluster://host:port,host:port',
    ],
    [
      'its version is too old',
      {},
      'give the address of an independent server of Redis 7.0 or newer, or Valkey, that is no node of a cluster',
    ],
  ])('does not count a server that must not vote, and says what to give in its place: %s', (fault, of, advice) => {
    const { findings, voters } = judge(beside({ fault, report: report('a', of) }));
    expect(findings).toEqual([{ level: 'problem', master: 'a', what: fault, advice }]);
    expect(voters).toEqual(['b', 'c']);
  });

  it.each([
    [{ code: 'UNREACHABLE', reason: 'it hangs' }, 'it cannot be reached: it hangs', 'start it, or correct its address'],
    [{ code: 'WRONGPASS', reason: 'WRONGPASS it', advice: 'correct', isPermanent: true }, 'WRONGPASS it', 'correct'],
  ])('names the problem of a connection, and what to change: %j', (unreachable, what, advice) => {
    const { findings, voters } = judge(beside({ unreachable, report: undefined }));
    expect(brief(findings)).toEqual([['problem', 'a', what]]);
    expect(findings[0]?.advice).toContain(advice);
    expect(voters).toEqual(['b', 'c']);
  });

  it('reports a failing disk as a problem, and an answer that is slower than masterTimeout', () => {
    const failing = persistent({ appendOnly: false, fsync: undefined, snapshots: true, failing: true });
    expect(judge(beside(failing)).healthy).toBe(false);
    const slow = judge(beside({ latency: { fastest: 251, median: 260 } }));
    expect([slow.healthy, slow.findings.length]).toEqual([true, 1]);
    expect(judge(beside({ latency: { fastest: 249, median: 500 } })).findings).toEqual([]);
    expect(slow.findings[0]).toMatchObject({
      what: 'its fastest answer took 251 ms, longer than masterTimeout (250 ms by default): from here, requests to it fail',
      advice: expect.stringContaining("masterTimeout: '800ms' or more"),
    });
    const given = (masterTimeout: number) =>
      judge(beside({ latency: { fastest: 120, median: 130 } }), { masterTimeout });
    expect(given(200).findings).toEqual([]);
    expect(brief(given(100).findings)).toEqual([
      ['problem', 'a', expect.stringContaining('longer than masterTimeout (100 ms)')],
    ]);
  });

  it('reports a server that evicts keys', () => {
    expect(judge(beside({ report: report('a', { eviction: 'allkeys-lru' }) })).findings).toEqual([
      {
        ...{ level: 'problem', master: 'a' },
        what: 'its maxmemory-policy allkeys-lru drops locks that are held when its memory is full',
        advice: 'CONFIG SET maxmemory-policy noeviction, and the same in its configuration file',
      },
    ]);
  });
});

describe('The offset of a clock', () => {
  it('lies within the bounds of every sample', () => {
    const samples = [
      { sent: 100, received: 140, time: 1_120 },
      { sent: 200, received: 204, time: 1_203 },
    ];
    expect(offsetOf(samples)).toEqual({ min: 998, max: 1_004 });
    expect(offsetOf([])).toBeUndefined();
  });
});
