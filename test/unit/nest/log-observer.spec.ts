import { describe, expect, it } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import { CronExpression } from '@nestjs/schedule';
import type { MasterStatus, RedlockStatus } from '../../../lib/operate/status.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { LogDamper, logTo } from '../../../lib/nest/log-observer.js';
import { shortestPeriod } from '../../../lib/nest/module-settings.js';
import { down, quarantined, summaryOf, voting } from '../support/statuses.js';

const NOON = new Date(2026, 0, 1, 12, 0, 0).getTime();

function recording() {
  const clock = new ManualClock(NOON);
  const lines: string[] = [];
  const record = (level: string) => (message: unknown) => void lines.push(`${level} ${String(message)}`);
  const logger: LoggerService = { ...levels(record), debug: record('debug') };
  const now: { status?: RedlockStatus } = {};
  return {
    lines,
    clock,
    now,
    log: logTo(logger, clock, () => now.status),
  };
}

function levels(record: (level: string) => (message: unknown) => void): Omit<LoggerService, 'debug'> {
  return { log: record('log'), warn: record('warn'), error: record('error') };
}

it.each<[string, MasterStatus[], string[]]>([
  [
    'during quarantines',
    [quarantined('a', 63_000), quarantined('b', 28_100), voting('c')],
    [
      'warn locks can be taken from 12:00:29 (in 29 s): 1 of 3 masters vote ' +
        '(a: waits after a restart; b: waits after a restart)',
    ],
  ],
  [
    'without a quorum of connections',
    [voting('a'), down('b'), down('c')],
    ['error no lock can be taken: 1 of 3 masters vote (b: down, gone; c: down, gone)'],
  ],
])('The line at boot says what is true, %s', (_, masters, expected) => {
  const { lines, log } = recording();
  log.firstStatus?.(summaryOf(...masters));
  expect(lines).toEqual(expected);
});

it('The lines at boot warn of a master that waits beside others that vote', () => {
  const { lines, log } = recording();
  const reason = 'waits 9.8 s because it is new';
  log.masterQuarantined?.('c', reason, 9_800);
  log.firstStatus?.(
    summaryOf(voting('a'), voting('b'), { master: 'c', state: 'quarantined', reason, remaining: 9_800 }),
  );
  expect(lines).toEqual([
    `warn master c ${reason} before it votes: it may have lost locks that are held (see restartGuard)`,
    'log locks are available: 2 of 3 masters vote',
  ]);
});

describe('The lines about the quorum', () => {
  it('say why it was lost, from when locks can be taken, and that they can', () => {
    const { lines, log } = recording();
    log.quorumLost?.(1, 3, summaryOf(voting('a'), quarantined('b', 1_000), down('c')));
    log.quorumRestored?.(2, 3, summaryOf(voting('a'), voting('b'), down('c')));
    log.quorumLost?.(0, 1, summaryOf(down('a')));
    expect(lines).toEqual([
      'error no lock can be taken: 1 of 3 masters vote, locks from 12:00:01 (in 1 s) ' +
        '(b: waits after a restart; c: down, gone)',
      'log locks can be taken again: 2 of 3 masters vote',
      'error no lock can be taken: 0 of 1 master votes (a: down, gone)',
    ]);
  });

  it('say once in an outage from when locks can be taken, as soon as only quarantines have to end', () => {
    const { lines, log, now } = recording();
    log.firstStatus?.(summaryOf(voting('a'), voting('b'), voting('c')));
    log.quorumLost?.(0, 3, summaryOf(down('a'), down('b'), down('c')));
    const back = (...masters: MasterStatus[]): void => {
      now.status = summaryOf(...masters);
      log.masterQuarantined?.('a', 'waits 10.0 s after a restart', 10_000);
    };
    back(quarantined('a', 10_000), down('b'), down('c'));
    back(quarantined('a', 10_000), quarantined('b', 28_000), down('c'));
    back(quarantined('a', 10_000), quarantined('b', 28_000), quarantined('c', 28_000));
    expect(lines.slice(1).filter((line) => !line.includes('master a '))).toEqual([
      'error no lock can be taken: 0 of 3 masters vote (a: down, gone; b: down, gone; c: down, gone)',
      'warn locks can be taken from 12:00:28 (in 28 s): 0 of 3 masters vote ' +
        '(a: waits after a restart; b: waits after a restart; c: down, gone)',
    ]);
  });

  it('do not say "again" if no quorum has voted since the boot', () => {
    const { lines, log } = recording();
    log.firstStatus?.(summaryOf(down('a')));
    log.quorumRestored?.(1, 1, summaryOf(voting('a')));
    expect(lines[1]).toBe('log locks are available: 1 of 1 master votes');
  });
});

describe('The lines about locks', () => {
  it('say at the level for debugging, which a logger need not have, what a call waits for and what has woken it', () => {
    const { lines, log } = recording();
    log.waiting?.(['a', 'b'], { instance: 'web-1', since: new Date(0) });
    log.waiting?.(['c'], undefined);
    expect(lines).toEqual([
      'debug a call waits for "a", "b", held by web-1 since 1970-01-01T00:00:00.000Z',
      'debug a call waits for "c"',
    ]);
    log.woken?.(['a'], 'reserved', 'm1');
    log.woken?.(['b'], 'admitted', undefined);
    expect(lines.slice(2)).toEqual([
      'debug a call that waits for "a" is woken: reserved, m1',
      'debug a call that waits for "b" is woken: admitted',
    ]);
    const withoutDebug = logTo(
      levels(() => () => undefined),
      new ManualClock(0),
    );
    expect(() => withoutDebug.waiting?.(['c'], undefined)).not.toThrow();
  });
});

function setUp() {
  const clock = new ManualClock();
  const lines: string[] = [];
  const damper = new LogDamper(clock);
  const say = (text: string, name = 'a'): void => damper.write(name, (line) => lines.push(line), text);
  return { clock, lines, damper, say };
}

describe('The lines of a subject that changes all the time', () => {
  it('are all written at first, and whenever it has been quiet for long', async () => {
    const { clock, lines, say } = setUp();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 6; i++) say(`${round} ${i}`);
      await clock.advance(10_000);
    }
    expect(lines).toHaveLength(18);
  });

  it('are written at a growing interval after that, with the number of those left out, and keep no other subject back', async () => {
    const { clock, lines, say } = setUp();
    for (let i = 0; i < 1_500; i++) {
      say(`line ${i}`);
      await clock.advance(10);
    }
    say('calm', 'b');
    expect(lines.pop()).toBe('calm');
    expect(lines.slice(0, 7)).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((i) => `line ${i}`),
      expect.stringMatching(/^line 10\d \(\d\d more changes were left out\)$/),
    ]);
    expect(lines.length).toBeLessThan(12);
    await clock.advance(60_000);
    expect(lines.at(-1)).toMatch(/^line 1499 /);
  });

  it('end with the present state when the application closes', () => {
    const { lines, say, damper } = setUp();
    for (let i = 0; i < 10; i++) say(`line ${i}`);
    damper.end();
    expect(lines.at(-1)).toBe('line 9 (3 more changes were left out)');
    expect(lines).toHaveLength(7);
  });
});

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('The shortest period of a cron expression', () => {
  it.each<[string, number]>([
    [CronExpression.EVERY_SECOND, SECOND],
    [CronExpression.EVERY_5_SECONDS, 5 * SECOND],
    [CronExpression.EVERY_MINUTE, MINUTE],
    [CronExpression.EVERY_HOUR, HOUR],
    [CronExpression.EVERY_DAY_AT_1AM, 24 * HOUR],
    ['0,50 * * * * *', 10 * SECOND],
    ['59,0 * * * * *', SECOND],
    ['*/7 * * * *', 4 * MINUTE],
    ['0 10-12 * * * *', MINUTE],
    ['0 5/20 * * * *', 20 * MINUTE],
    ['0 9,17 * * *', 8 * HOUR],
  ])('of %j is the smallest difference of two ticks', (expression, period) =>
    expect(shortestPeriod(expression)).toBe(period),
  );

  it.each(['', 'tomorrow', '@daily', '* * *', 'x * * * * *', '* * * * * * *', '61 * * * * *'])(
    'is unknown for %j, which is another kind of schedule',
    (expression) => expect(shortestPeriod(expression)).toBeUndefined(),
  );
});
