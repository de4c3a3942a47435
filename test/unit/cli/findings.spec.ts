import { describe, expect, it } from '@jest/globals';
import { type Examination } from '../../../lib/cli/examination.js';
import { type Finding, judge } from '../../../lib/cli/findings.js';
import { certainDistance, medianOf, offsetOf } from '../../../lib/cli/clock-offset.js';
import type { Report } from '../../../lib/redis/identity.js';

const DAY = 86_400_000;

function report(of: Partial<Report> = {}): Report {
  const server = {
    run: undefined,
    version: '7.2.0',
    uptime: DAY,
    role: 'master',
    wasPromoted: false,
    mode: 'standalone',
  };
  return { ...server, eviction: undefined, time: 0, marker: undefined, ...of };
}

/** A master with which nothing is wrong, but for what is given. */
function examination(name: string, of: Partial<Examination> = {}): Examination {
  return {
    ...{ master: name, unreachable: undefined, report: report({ run: name }), fault: undefined, missing: [] },
    persistence: { appendOnly: true, fsync: 'always', snapshots: false, failing: false },
    ...{ refusal: undefined, clock: { least: -1, most: 1 }, latency: { fastest: 0.2, median: 0.3 } },
    ...of,
  };
}

/** Two good masters and one of which something else is known. */
function beside(of: Partial<Examination>): Examination[] {
  return [examination('a', of), examination('b'), examination('c')];
}

function brief(findings: readonly Finding[]): unknown[] {
  return findings.map(({ level, master, what }) => [level, master, what]);
}

describe('The verdict', () => {
  it('has nothing to say about three good masters', () => {
    expect(judge(beside({}))).toEqual({ healthy: true, masters: 3, quorum: 2, voters: ['a', 'b', 'c'], findings: [] });
  });

  it('is healthy with notes only: one master, an even number, no guard and no persistence', () => {
    const forgetful = { persistence: { appendOnly: true, fsync: 'everysec', snapshots: true, failing: false } };
    const one = judge([examination('a', forgetful)]);
    const four = judge([...beside({}), examination('d')]);
    expect([one.healthy, four.healthy]).toEqual([true, true]);
    expect(brief(one.findings)).toEqual([
      ['note', undefined, 'one master is a single point of failure'],
      ['note', undefined, expect.stringContaining('forgets its locks')],
    ]);
    expect(brief(four.findings)).toEqual([['note', undefined, '4 masters survive no more failures than 3']]);
    expect(judge([examination('a')]).findings).toHaveLength(1);
    expect(judge(beside(forgetful)).findings).toEqual([]);
  });

  it.each<[string, Partial<Examination>, string]>([
    ['ahead', { clock: { least: 1_500, most: 1_510 } }, 'its clock is 1.5 s ahead of the others'],
    ['behind', { clock: { least: -90_010, most: -90_001 } }, 'its clock is 90.0 s behind the others'],
  ])('names a clock that is certainly %s', (_, of, what) => {
    const { healthy, findings, voters } = judge(beside(of));
    expect(brief(findings)).toEqual([['problem', 'a', what]]);
    expect(healthy).toBe(false);
    expect(voters).toContain('a');
  });

  it('does not blame a clock for a slow network', () => {
    expect(judge(beside({ clock: { least: -20_000, most: 20_000 } })).findings).toEqual([]);
  });

  it('tells for how long votes do not count, by the marker or else by the age of the server', () => {
    const marker = { run: 'a', nonce: 'n', from: 5_000, maxTtl: 30_000 };
    const told = (of: Partial<Report>) => brief(judge(beside({ report: report({ run: 'a', ...of }) })).findings);
    expect(told({ marker, time: 1_000, uptime: 2_000 })).toEqual([
      ['note', 'a', 'its votes do not count for 4.0 s more'],
    ]);
    expect(told({ marker, time: 6_000, uptime: 2_000 })).toEqual([]);
    expect(told({ uptime: 2_000 })).toEqual([['note', 'a', expect.stringContaining('for up to 28.0 s')]]);
    expect(told({ marker: { ...marker, run: 'before' }, uptime: 2_000 })).toHaveLength(1);
    expect(told({ uptime: 30_000 })).toEqual([]);
  });

  it('does not let a master vote that refuses, lacks what is vital, or is one that votes already', () => {
    const refusal = { code: 'OOM', reason: 'no memory' };
    expect(judge(beside({ refusal })).voters).toEqual(['b', 'c']);
    expect(judge(beside({ missing: [{ rule: '+get', disabled: false }] })).voters).toEqual(['b', 'c']);
    const slower = judge(beside({ missing: [{ rule: '+info', disabled: false }] }));
    expect([slower.healthy, slower.voters.length]).toEqual([false, 3]);
    expect(judge([...beside({}), examination('d', { report: report({ run: 'a' }) })]).voters).toEqual(['a', 'b', 'c']);
    // Those that do not tell who they are may be different ones.
    const silent = { report: report() };
    expect(judge([examination('a', silent), examination('b', silent), examination('c')]).healthy).toBe(true);
  });

  it('notes a failing disk as a problem, and a slow answer as a note', () => {
    const failing = { persistence: { appendOnly: false, fsync: undefined, snapshots: true, failing: true } };
    expect(judge(beside(failing)).healthy).toBe(false);
    const slow = judge(beside({ latency: { fastest: 51, median: 60 } }));
    expect([slow.healthy, slow.findings.length]).toEqual([true, 1]);
    expect(judge(beside({ latency: { fastest: 49, median: 500 } })).findings).toEqual([]);
  });
});

describe('The offset of a clock', () => {
  it('lies within what every sample allows', () => {
    const samples = [
      { sent: 100, received: 140, time: 1_120 },
      { sent: 200, received: 204, time: 1_203 },
    ];
    expect(offsetOf(samples)).toEqual({ least: 998, most: 1_004 });
    expect(offsetOf([])).toBeUndefined();
  });

  it('is compared with the one in the middle, by what is certain', () => {
    const offsets = [5_000, 0, 3].map((at) => ({ least: at - 1, most: at + 1 }));
    const reference = medianOf(offsets)!;
    expect(reference).toEqual({ least: 2, most: 4 });
    expect(offsets.map((offset) => certainDistance(offset, reference))).toEqual([4_995, -1, 0]);
  });
});
