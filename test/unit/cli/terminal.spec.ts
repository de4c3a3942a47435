import { describe, expect, it } from '@jest/globals';
import { jobJson, jobRow, runRows } from '../../../lib/cli/jobs.js';
import { processTerminal, table, wrap } from '../../../lib/cli/terminal.js';
import { matcherOf } from '../../../lib/admin/list-locks.js';
import { literally } from '../../../lib/redis/permissions.js';
import { duration } from '../../../lib/settings/display.js';
import { endRecord, type JobRecord, markRecord, startRecord } from '../../../lib/operate/job-record.js';

type JobStatus = Parameters<typeof jobRow>[0];
type Streams = Parameters<typeof processTerminal>[0];

it('The terminal paints only where it shows colours', () => {
  const painted = (stdout: object) =>
    processTerminal({ stdout: { ...stdout, on: () => undefined } } as unknown as Streams).paint('red', 'x');
  expect([painted({}), painted({ isTTY: true, hasColors: () => false })]).toEqual(['x', 'x']);
  expect(painted({ isTTY: true, hasColors: () => true })).toBe('\x1b[31mx\x1b[0m');
});

describe('The output for people', () => {
  it.each<{ of: number | undefined; words: string }>([
    { of: undefined, words: '-' },
    { of: 0, words: '0.0 ms' },
    { of: 0.26, words: '0.3 ms' },
    { of: -12.4, words: '-12 ms' },
    { of: 999, words: '999 ms' },
    { of: 1_499, words: '1.5 s' },
    { of: 119_000, words: '119.0 s' },
    { of: 120_000, words: '2.0 min' },
    { of: 7_200_000, words: '2.0 h' },
    { of: -864_000_000, words: '-10.0 days' },
  ])('shows $of ms as $words', ({ of, words }) => expect(duration(of)).toBe(words));

  it('breaks lines between words, and within a word that is too long', () => {
    expect(wrap('its data is new to all processes', 14)).toBe('its data is\nnew to all\nprocesses');
    expect(wrap('a-very-long-name:4711', 8)).toBe('a-very-l\nong-name\n:4711');
    expect(wrap('', 8)).toBe('');
  });

  it.each([
    ['one long cell', ['a', 'x'.repeat(300)]],
    ['many cells', Array.from({ length: 5 }, (_, i) => `${i} ${'word '.repeat(20)}`)],
  ])('draws lines of at most 100 columns: %s', (_, row) => {
    const lines = table(
      row.map(() => 'head'),
      [row],
    ).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(lines.join('').replaceAll(/[^x]/g, '')).toHaveLength(row.join('').replaceAll(/[^x]/g, '').length);
  });

  it('paints each line of a cell', () => {
    const drawn = table(['h'], [['y'.repeat(200)]], (line, { column }) => `<${column}>${line.slice(3)}`);
    expect(drawn.match(/<0>/g)).toHaveLength(3);
  });

  it('draws a table without colours', () => {
    const drawn = table(
      ['a', 'b'],
      [
        ['1', 'x'],
        ['2', 'y'],
      ],
    );
    expect(drawn.split('\n')).toEqual(['┌───┬───┐', '│ a │ b │', '├───┼───┤', '│ 1 │ x │', '│ 2 │ y │', '└───┴───┘']);
  });
});

const NOON = Date.UTC(2026, 10, 22, 12);
const MINUTE = 60_000;

function started(last?: JobRecord, tick = NOON, attempt = 1): JobRecord {
  return startRecord(last, { tick, attempt }, { holder: 'web-1:1', at: tick + 12 });
}

function statusOf(record: JobRecord, rest: Partial<JobStatus> = {}): JobStatus {
  return { name: 'report', record, isSettled: true, isHeld: false, ...rest };
}

describe('The rows of jobs', () => {
  const ok = endRecord(started(), { holder: 'web-1:1', at: NOON + 1_512 });

  it('distinguish a tick that runs from one whose instance has the lock no more', () => {
    const again = started(started(ok, NOON + MINUTE), NOON + MINUTE, 2);
    expect(jobRow(statusOf(again, { isHeld: true })).slice(1)).toEqual(
      ['running', '2026-11-22 12:01:00Z', '-', 'web-1:1', '2', 'yes'], //
    );
    expect(jobRow(statusOf(again))[1]).toBe('unfinished');
    expect(runRows(statusOf(again, { isHeld: true })).map((row) => [row[1], row[5]])).toEqual([
      ['running', '2'],
      ['unfinished', '1'],
      ['ok', '1'],
    ]);
  });

  it('show what did not run, without a start', () => {
    const unknown = markRecord(ok, { tick: NOON + MINUTE, state: 'unknown' }, { holder: 'web-2:7', at: NOON + MINUTE });
    expect(jobRow(statusOf(unknown, { isSettled: false })).slice(1)).toEqual(
      ['unknown', '2026-11-22 12:01:00Z', '-', 'web-2:7', '0', 'no'], //
    );
    const baseline = markRecord(undefined, { tick: NOON, state: 'baseline' }, { holder: 'web-1:1', at: NOON });
    expect(jobRow(statusOf(baseline))[1]).toBe('baseline');
    expect(runRows(statusOf(baseline))).toEqual([]);
  });

  it('replace the control characters of names, instances and errors, and stay within 100 columns', () => {
    const holder = `${'a-long-instance-name'.repeat(3)}:1`;
    const begun = startRecord(undefined, { tick: NOON, attempt: 1 }, { holder, at: NOON });
    const failed = endRecord(begun, { holder, at: NOON + 3 }, { message: `\x1b[2Jno such table: ${'x'.repeat(300)}` });
    const hostile = statusOf(failed, { name: 'a\x1b[31m\nname' });
    const drawn = [[jobRow(hostile)], runRows(hostile)].map(([row = []]) => table(row, [row])).join('\n');
    expect(drawn).not.toContain('\x1b');
    expect(Math.max(...drawn.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it('are objects with ISO times and milliseconds for programs', () => {
    expect(jobJson(statusOf(ok))).toEqual({
      name: 'report',
      state: 'ok',
      isSettled: true,
      runs: [
        {
          scheduledFor: '2026-11-22T12:00:00.000Z',
          startedAt: '2026-11-22T12:00:00.012Z',
          endedAt: '2026-11-22T12:00:01.512Z',
          ...{ instance: 'web-1:1', attempt: 1, outcome: 'ok', duration: 1_500 },
        },
      ],
    });
    expect(jobJson(statusOf(started(ok, NOON + MINUTE), { isHeld: true }))).toMatchObject({
      state: 'running',
      current: { scheduledFor: '2026-11-22T12:01:00.000Z', instance: 'web-1:1', attempt: 1 },
    });
  });
});

describe('A pattern of SCAN', () => {
  it.each([
    ['stripe', ['stripe'], ['eu:stripe', 'stripe:', '']],
    ['*', ['', 'a', 'a:b', 'line\nbreak'], []],
    ['order:*', ['order:', 'order:1'], ['order', 'an order:1']],
    ['a?c', ['abc', 'a\nc'], ['ac', 'abbc']],
    ['ä??', ['äö', 'äab'], ['äa']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '-x']],
    ['[^a]x', ['bx'], ['ax', 'x']],
    ['[.]x', ['.x'], ['ax']],
    ['[\\]]', [']'], ['\\']],
    ['[]', [], ['', '[]']],
    ['a\\*', ['a*'], ['ab']],
    ['(a|b)+', ['(a|b)+'], ['a', 'ab']],
    ['[a', ['[a'], ['a']],
  ])('%j matches the same names as on a server', (pattern, matching, others) => {
    const matches = matcherOf(pattern);
    expect(matching.filter((name) => !matches(name))).toEqual([]);
    expect(others.filter((name) => matches(name))).toEqual([]);
  });

  it('that is escaped matches only itself', () => {
    const matches = matcherOf(literally('a*[b]?\\'));
    expect([matches('a*[b]?\\'), matches('ab')]).toEqual([true, false]);
  });
});
