import { describe, expect, it } from '@jest/globals';
import { type Examination, offsetOf } from '../../../lib/cli/examination.js';
import { judge, type Verdict } from '../../../lib/cli/findings.js';
import { ExaminedMasters } from '../../../lib/cli/votes.js';
import { type Marker, markerFrom } from '../../../lib/redis/guard/marker.js';
import type { ServerIdentity } from '../../../lib/redis/replies.js';

type Persistence = NonNullable<Examination['persistence']>;
type ShardFacts = NonNullable<Examination['shard']>;
type ClusterExamination = NonNullable<Examination['cluster']>;
type Finding = Verdict['findings'][number];

const DAY = 86_400_000;

/** Current time of the servers. */
const NOW = 1_000_000;

/** The marker of a server whose run is named after its master. */
function marker(run: string, of: { from?: number; vetoed?: string; replid?: string } = {}): Marker {
  const { from = 0, vetoed = '0', replid = `${run}'s` } = of;
  const announced = ['0', `30000:${NOW + DAY}`, '30000'];
  return markerFrom(
    [run, replid, `nonce of ${run}`, `${from}`, vetoed, ...announced, 'app:1', `${from - 30_302}`, 'it was new'],
    NOW,
  )!;
}

function report(run: string, of: Partial<ServerIdentity> = {}): ServerIdentity {
  return {
    ...{ run, replid: run && `${run}'s`, wasPromoted: false, replicas: 0, version: '7.2.0', role: 'master' },
    ...{ mode: 'standalone', hasAppendOnlyFile: true, eviction: undefined, uptime: DAY, time: NOW },
    ...{ marker: marker(run), ...of },
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

/** A master whose votes do not count for some milliseconds. */
function waiting(name: string, wait: number, vetoed = '0'): Examination {
  return reporting(name, { marker: marker(name, { from: NOW + wait, vetoed }) });
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
    expect(one.findings[1]?.advice).toMatch(/restartGuard: true.*durable: true.*maxTtl after the stop.*fencing tokens/);
    expect(brief(four.findings)).toEqual([['note', undefined, '4 masters survive no more failures than 3']]);
    expect(judge([examination('a', { ...persistent(), isDurable: true })]).findings).toHaveLength(1);
    expect(judge(beside(forgetful)).findings).toEqual([]);
  });

  it.each([
    [{ appendOnly: true, fsync: 'always' }, { isDurable: true }, []],
    [{ appendOnly: true, fsync: undefined }, { isDurable: true }, []],
    [{ appendOnly: true, fsync: 'everysec' }, { isDurable: true }, ['its appendfsync is everysec, not always']],
    [{ appendOnly: false, fsync: 'always' }, { isDurable: true }, ['it has no append-only file']],
    [
      { appendOnly: true, fsync: 'always', isRewriting: true },
      { isDurable: true },
      ['its append-only file is being written anew, and is incomplete if it is the first one'],
    ],
    [
      { appendOnly: true, fsync: 'always' },
      { isDurable: true, replicas: 2 },
      ['it has 2 replicas, whose data may lack its last writes when started in its place'],
    ],
  ])('compares the declaration that a master is durable with what it shows: %j %j', (file, of, flaws) => {
    const { appendOnly: hasAppendOnlyFile } = file;
    const reported = report('a', { replicas: 'replicas' in of ? of.replicas : 0, hasAppendOnlyFile });
    const { findings } = judge(beside({ isDurable: true, ...persistent(file), report: reported }));
    expect(brief(findings)).toEqual(flaws.map((flaw) => ['problem', 'a', `it is declared durable, but ${flaw}`]));
  });

  it('names the masters that could be declared durable, in one line', () => {
    const { findings, healthy } = judge(ALL.map((name) => examination(name, persistent())));
    expect([healthy, findings.length]).toEqual([true, 1]);
    expect(findings[0]).toMatchObject({
      what: expect.stringContaining('always on a, b, c'),
      advice: expect.stringContaining('durable: true'),
    });
  });

  it('does not advise to keep every write to the owner of a cluster, whose failovers lose them', () => {
    const shards = [examination('127.0.0.1:7001', persistent({ fsync: 'everysec', snapshots: true }))];
    const cluster = { ids: [], shards, unserved: 0, unreachable: [], nodeTimeout: undefined };
    const { findings } = judge([examination('cluster of 127.0.0.1:7001', { cluster })]);
    const note = findings.find(({ what }) => what.includes('forgets its locks'));
    expect(note?.advice).toContain('restartGuard: true');
  });

  it.each<[string, Examination[], unknown[]]>([
    [
      'ahead',
      beside({ clock: { min: 1_500, max: 1_510 } }),
      ['problem', 'a', 'its clock is 1.5 s ahead of the others'],
    ],
    [
      'behind',
      beside({ clock: { min: -90_010, max: -90_001 } }),
      ['problem', 'a', 'its clock is 90.0 s behind the others'],
    ],
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
      const of = { time, marker: marker('a', { from: NOW + 4_000 }) };
      const { healthy, voters, findings } = judge(beside({ report: report('a', of) }));
      return [healthy, voters, brief(findings)];
    };
    expect(at(NOW)).toEqual([true, ['b', 'c'], [['note', 'a', 'its votes do not count for 4.0 s: it was new']]]);
    expect(at(NOW + 4_000)).toEqual([true, ['a', 'b', 'c'], []]);
  });

  it.each<[string, Partial<ServerIdentity>, string]>([
    ['without a marker', { marker: undefined }, 'no process has met its data yet'],
    ['of another run', { marker: marker('before') }, 'it was restarted, and no process has met it since'],
    [
      'of another history',
      { marker: marker('a', { replid: 'old' }), wasPromoted: true },
      'it was promoted from a replica, and no process has met it since',
    ],
  ])('does not count a master with data %s', (_, of, reason) => {
    const { voters, findings } = judge(beside({ report: report('a', of) }));
    expect(voters).toEqual(['b', 'c']);
    expect(brief(findings)).toEqual([['note', 'a', `its votes do not count: ${reason}`]]);
    expect(findings[0]?.advice).toContain('lets it wait');
  });

  it.each<[string, Partial<ServerIdentity>]>([
    ['to which the first replica was attached', { marker: marker('a', { replid: 'old' }), replicas: 1 }],
    ['that was restarted and is declared durable', { marker: marker('before') }],
  ])('reports that a master %s votes as soon as a process meets it', (_, of) => {
    const { voters, findings } = judge(beside({ report: report('a', of), isDurable: of.replicas === undefined }));
    expect(voters).toEqual(['b', 'c']);
    expect(findings.filter(({ level }) => level === 'note').map(({ advice }) => advice)).toEqual([
      'the next process that meets it lets it vote at once',
    ]);
  });

  it('has a problem while fewer than a quorum vote, until the last member of a quorum has waited', () => {
    const masters = [waiting('a', 9_000, '1'), waiting('b', 4_000, '1'), waiting('c', 20_000, '1')];
    const { healthy, voters, locksIn, findings } = judge(masters);
    expect([healthy, voters, locksIn]).toEqual([false, [], 9_000]);
    expect(brief(findings).at(-1)).toEqual([
      'problem',
      undefined,
      'no lock can be taken for 9.0 s: 0 of 3 masters vote now, 2 must',
    ]);
    expect(findings.at(-1)?.advice).toContain('wait');
    // A marker from a clock that was set back later is not believed.
    expect(judge([waiting('a', DAY), ...masters.slice(1)]).findings[0]?.what).toContain('do not count for 30.3 s');
  });

  it('reports that new masters vote early, unless a holder has objected or one of them is not new', () => {
    const advice = (third: Examination): string | undefined => {
      const { findings } = judge([waiting('a', 20_000), waiting('b', 20_000), third]);
      return findings.find(({ level }) => level === 'problem')?.advice;
    };
    expect(advice(waiting('c', 20_000))).toMatch(
      /^wait; they may vote about 2.5 s after the first application connects/,
    );
    expect(advice(reporting('c', { marker: undefined }))).toMatch(/^wait; they may vote about 2.5 s after/);
    expect(advice(waiting('c', 9_000, '1'))).not.toContain('2.5 s');
    expect(advice(examination('c'))).not.toContain('2.5 s');
    const { healthy, locksIn, findings } = judge(ALL.map((name) => reporting(name, { marker: undefined })));
    expect([healthy, locksIn, findings.length]).toEqual([false, null, 1]);
    expect(findings[0]).toMatchObject({
      what: 'no lock can be taken until a process has met the masters: 0 of 3 masters vote now, 2 must',
      advice: expect.stringContaining('start the application: they vote about 2.5 s after'),
    });
  });

  it('requires markers only where applications have a guard: with three masters or a marker, unless disabled', () => {
    const [a, b, c] = ALL.map((name) => reporting(name, { marker: undefined })) as [
      Examination,
      Examination,
      Examination,
    ];
    const young = waiting('b', 9_000);
    expect(judge([a]).voters).toEqual(['a']);
    expect(judge([a, young]).voters).toEqual([]);
    expect(judge([a, b, c]).voters).toEqual([]);
    expect(judge([a, young, c], { guarded: false })).toMatchObject({ healthy: true, findings: [], locksIn: 0 });
  });

  it('does not count a master that refuses, lacks a vital permission, or votes already under another name', () => {
    const refusal = { code: 'OOM', reason: 'no memory' };
    expect(judge(beside({ refusal })).voters).toEqual(['b', 'c']);
    const { locksIn, findings } = judge(ALL.map((name) => examination(name, name === 'c' ? {} : { refusal })));
    expect([locksIn, findings.length]).toEqual([null, 2]);
    expect(judge(beside({ missing: [{ rule: '+get', disabled: false }] })).voters).toEqual(['b', 'c']);
    const slower = judge(beside({ missing: [{ rule: '+info', disabled: false }] }));
    expect([slower.healthy, slower.voters.length]).toEqual([false, 3]);
    expect(judge([...beside({}), examination('d', { report: report('a') })]).voters).toEqual(['a', 'b', 'c']);
    // Masters that do not reveal their identity may be different servers, unless their data is the same.
    const silent = (nonceOf: string): Partial<Examination> => ({
      report: report('', { marker: { ...marker('', { replid: '' }), nonce: `nonce of ${nonceOf}` } }),
    });
    const masters = (nonceOf: string) => [
      examination('a', silent('a')),
      examination('b', silent(nonceOf)),
      examination('c'),
    ];
    expect(judge(masters('b'))).toMatchObject({ healthy: true, voters: ALL });
    expect(judge(masters('a'))).toMatchObject({ healthy: false, voters: ['a', 'c'] });
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

  it('reports a server that evicts keys', () => {
    expect(judge(beside({ report: report('a', { eviction: 'allkeys-lru' }) })).findings).toEqual([
      {
        ...{ level: 'problem', master: 'a' },
        what: 'its maxmemory-policy allkeys-lru drops locks that are held when its memory is full',
        advice: 'CONFIG SET maxmemory-policy noeviction, and the same in its configuration file',
      },
    ]);
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
    const slow = judge(beside({ latency: { fastest: 51, median: 60 } }));
    expect([slow.healthy, slow.findings.length]).toEqual([true, 1]);
    expect(judge(beside({ latency: { fastest: 49, median: 500 } })).findings).toEqual([]);
    expect(slow.findings[0]).toMatchObject({
      what: 'its fastest answer took 51 ms, longer than masterTimeout (50 ms by default): from here, requests to it fail',
      advice: expect.stringContaining("masterTimeout: '200ms' or more"),
    });
    const given = (masterTimeout: number) =>
      judge(beside({ latency: { fastest: 120, median: 130 } }), { masterTimeout });
    expect(given(200).findings).toEqual([]);
    expect(brief(given(100).findings)).toEqual([
      ['problem', 'a', expect.stringContaining('longer than masterTimeout (100 ms)')],
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

  it('is compared with the median by its certain distance', () => {
    const examined = [5_000, 0, 3].map((at) => examination(`at ${at}`, { clock: { min: at - 1, max: at + 1 } }));
    const masters = new ExaminedMasters(examined);
    expect(masters.clock).toEqual({ min: 2, max: 4 });
    expect(examined.map((one) => masters.clockErrorOf(one))).toEqual([4_995, -1, 0]);
  });
});

function shard(of: Partial<ShardFacts> = {}): Examination {
  const facts = { partitions: 85, replicas: 1, state: 'ok', nodeTimeout: 15_000, standing: undefined, ...of };
  return examination('10.0.0.1:6379', { shard: facts });
}

function cluster(of: Partial<ClusterExamination> = {}): ClusterExamination {
  const shards = [shard(), shard(), shard()];
  return { ids: [], shards, unserved: 0, unreachable: [], nodeTimeout: undefined, ...of };
}

/** The findings about one cluster, without those about the number of masters. */
function findingsOn(of: ClusterExamination): readonly Finding[] {
  const { findings } = judge([examination('cluster', { cluster: of })], { guarded: false });
  return findings.filter(({ master }) => master !== undefined);
}

describe('The findings about a cluster', () => {
  it('are none for three primaries with replicas', () => {
    expect(findingsOn(cluster())).toEqual([]);
  });

  it.each<[Partial<ClusterExamination>, string, string]>([
    [{ unserved: 64 }, 'problem', '64 of 16384 slots have no primary'],
    [{ shards: [shard()] }, 'note', 'it has 1 primary, too few'],
    [
      { shards: [shard(), shard(), shard({ nodeTimeout: 5_000 })] },
      'problem',
      'different values of cluster-node-timeout: 5000 and 15000',
    ],
    [
      { unreachable: [{ address: '10.0.0.4:6379', failure: { code: 'UNREACHABLE', reason: 'ETIMEDOUT' } }] },
      'problem',
      'its replica 10.0.0.4:6379 cannot be reached: ETIMEDOUT',
    ],
  ])('name what is wrong with the whole: %j', (of, level, what) =>
    expect(findingsOn(cluster(of))).toEqual([expect.objectContaining({ level, what: expect.stringContaining(what) })]),
  );

  it.each<[Partial<ShardFacts>, Partial<ClusterExamination>, string, string]>([
    [{ state: 'fail' }, {}, 'problem', 'it reports cluster_state:fail'],
    [{ replicas: 0 }, {}, 'note', 'the locks of its 85 partitions fail'],
    [{}, { nodeTimeout: 5_000 }, 'problem', 'clusterNodeTimeout only 5.0 s'],
  ])('name what is wrong with a primary: %j %j', (facts, of, level, what) => {
    const findings = findingsOn(cluster({ ...of, shards: [shard(facts), shard(facts), shard(facts)] }));
    expect(findings.slice(0, 1)).toEqual([expect.objectContaining({ level, what: expect.stringContaining(what) })]);
  });
});
