import { describe, expect, it } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import { CronExpression } from '@nestjs/schedule';
import { LockNotAcquiredError } from '../../../lib/core/errors.js';
import type { MasterStatus, RedlockStatus } from '../../../lib/core/health/status.js';
import { ManualClock } from '../../../lib/memory/manual-clock.js';
import { LogDamper, logTo } from '../../../lib/nest/log-observer.js';
import { shortestPeriod } from '../../../lib/nest/module-settings.js';
import { down, quarantined, summaryOf, voting } from '../support/statuses.js';

const NOON = new Date(2026, 0, 1, 12, 0, 0).getTime();

function recording(usualWait?: number) {
  const clock = new ManualClock(NOON);
  const lines: string[] = [];
  const record = (level: string) => (message: unknown) => void lines.push(`${level} ${String(message)}`);
  const logger: LoggerService = { ...levels(record), debug: record('debug') };
  const now: { status?: RedlockStatus } = {};
  return {
    lines,
    clock,
    now,
    log: logTo(
      logger,
      clock,
      () => usualWait,
      () => now.status,
    ),
  };
}

function levels(record: (level: string) => (message: unknown) => void): Omit<LoggerService, 'debug'> {
  return { log: record('log'), warn: record('warn'), error: record('error') };
}

it.each<[string, MasterStatus[], string[]]>([
  ['with all masters', [voting('a'), voting('b'), voting('c')], ['log locks are available: 3 of 3 masters vote']],
  ['with one master alone', [voting('a')], ['log locks are available: 1 of 1 master votes']],
  [
    'with a master missing',
    [voting('a'), down('b'), voting('c')],
    ['warn master b does not vote: unreachable, gone', 'log locks are available: 2 of 3 masters vote'],
  ],
  [
    'during quarantines',
    [quarantined('a', 63_000), quarantined('b', 28_100), voting('c')],
    [
      'warn no lock until 12:00:29 (29 s) at the latest: 1 of 3 masters vote ' +
        '(a: quarantined, it was restarted; b: quarantined, it was restarted)',
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

describe('The lines about new masters', () => {
  const reason = 'its data is new to all processes';
  const [a, b, c] = ['a', 'b', 'c'].map((master): MasterStatus => ({
    master,
    state: 'quarantined',
    reason,
    remaining: 30_302,
  })) as [MasterStatus, MasterStatus, MasterStatus];
  const rest = `since ${reason}: it may have lost locks that are held (see restartGuard and durable)`;

  function boot(usualWait: number | undefined, ...masters: MasterStatus[]) {
    const { log, ...recorded } = recording(usualWait);
    for (const { master, reason: own, remaining = 0 } of masters) {
      if (own === reason) log.masterQuarantined?.(master, reason, remaining);
    }
    log.firstStatus?.(summaryOf(...masters));
    return { log, ...recorded };
  }

  it('say in one line when they vote as a rule and at the latest, and nothing more if they do', async () => {
    const { lines, clock, log } = boot(2_500, a, b, c);
    await clock.advance(2_500);
    for (const master of ['a', 'b', 'c']) log.masterVotesAgain?.(master);
    await clock.advance(60_000);
    expect(lines).toEqual([
      'log the masters are new: locks in about 2.5 s as a rule, by 12:00:31 (31 s) at the latest: 0 of 3 masters vote',
      ...['a', 'b', 'c'].map((master) => `debug master ${master} is new, and votes`),
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('say the same if the data of one of them is still being read', () => {
    const { lines } = boot(2_500, a, b, { ...c, reason: 'its data is being looked at' });
    expect(lines).toEqual([expect.stringMatching(/^log the masters are new: locks in about 2\.5 s as a rule, /)]);
  });

  it('warn of each that does not vote in twice the usual time, once', async () => {
    const { lines, clock, log } = boot(2_500, a, b, c);
    log.masterVotesAgain?.('b');
    await clock.advance(60_000);
    log.masterVotesAgain?.('a');
    expect(lines.slice(2)).toEqual([
      `warn master a does not vote for up to 25302 ms, ${rest}`,
      `warn master c does not vote for up to 25302 ms, ${rest}`,
      'log master a votes again',
    ]);
  });

  it('warn at once of one that may have lost its data, beside others with data', () => {
    const { lines } = boot(2_500, voting('a'), voting('b'), c);
    expect(lines).toEqual([
      `warn master c does not vote for up to 30302 ms, ${rest}`,
      'log locks are available: 2 of 3 masters vote',
    ]);
  });

  it('warn at once where new masters do not vote early', () => {
    const { lines } = boot(undefined, a);
    expect(lines).toEqual([
      `warn master a does not vote for up to 30302 ms, ${rest}`,
      `warn no lock until 12:00:31 (31 s) at the latest: 0 of 1 master votes (a: quarantined, ${reason})`,
    ]);
  });

  it('name no usual time that is longer than the quarantine', () => {
    const { lines } = boot(2_500, ...[a, b, c].map((one) => ({ ...one, remaining: 1_012 })));
    expect(lines).toEqual(['log the masters are new: locks by 12:00:02 (2 s) at the latest: 0 of 3 masters vote']);
  });
});

describe('The lines about the quorum', () => {
  it('say why it was lost, when it votes at the latest, and that it votes again', () => {
    const { lines, log } = recording();
    log.quorumLost?.(1, 3, summaryOf(voting('a'), quarantined('b', 1_000), down('c')));
    log.quorumRestored?.(2, 3, summaryOf(voting('a'), voting('b'), down('c')));
    log.quorumLost?.(0, 1, summaryOf(down('a')));
    expect(lines).toEqual([
      'error no lock can be taken: 1 of 3 masters vote, a quorum by 12:00:01 (1 s) at the latest ' +
        '(b: quarantined, it was restarted; c: down, gone)',
      'log locks can be taken again: 2 of 3 masters vote',
      'error no lock can be taken: 0 of 1 master votes (a: down, gone)',
    ]);
  });

  it('say once in an outage when a quorum votes at the latest, as soon as only quarantines have to end', () => {
    const { lines, log, now } = recording();
    log.quorumLost?.(0, 3, summaryOf(down('a'), down('b'), down('c')));
    const back = (...masters: MasterStatus[]): void => {
      now.status = summaryOf(...masters);
      log.masterQuarantined?.('a', 'it lost its data', 10_000);
    };
    back(quarantined('a', 10_000), down('b'), down('c'));
    back(quarantined('a', 10_000), quarantined('b', 28_000), down('c'));
    back(quarantined('a', 10_000), quarantined('b', 28_000), quarantined('c', 28_000));
    expect(lines.filter((line) => !line.includes('master a'))).toEqual([
      'error no lock can be taken: 0 of 3 masters vote (a: down, gone; b: down, gone; c: down, gone)',
      'warn no lock until 12:00:28 (28 s) at the latest: 0 of 3 masters vote ' +
        '(a: quarantined, it was restarted; b: quarantined, it was restarted; c: down, gone)',
    ]);
  });

  it('do not say "again" if no quorum has voted since the boot', () => {
    const { lines, log } = recording();
    log.firstStatus?.(summaryOf(down('a')));
    log.quorumRestored?.(1, 1, summaryOf(voting('a')));
    expect(lines[1]).toBe('log locks are available: 1 of 1 master votes');
  });
});

it('The lines about connections say "again" only of a master whose connection was lost', () => {
  const { lines, log } = recording();
  log.masterFound?.('a');
  log.masterLost?.('a', 'gone');
  log.masterFound?.('a');
  expect(lines).toEqual(['log connected to a', 'warn lost the connection to a: gone', 'log connected to a again']);
});

describe('The lines about locks', () => {
  it('warn of a lock in danger, with what each master replied', () => {
    const { lines, log } = recording();
    const answers = [{ master: 'm', answer: { kind: 'timeout', sent: true } as const }];
    log.lockInDanger?.(['a', 'b'], 1_234.5, answers);
    expect(lines).toEqual([
      'warn the lock on "a", "b" is in danger: it is lost in 1234 ms unless a quorum of masters agrees to extend it ' +
        '(m: no answer in time)',
    ]);
  });

  it('name skipped calls at the level for debugging, which a logger need not have', () => {
    const { lines, log } = recording();
    const error = new LockNotAcquiredError(['report'], [], 0, undefined);
    log.skipped?.('@WithLock on Jobs.report', error);
    expect(lines).toEqual([`debug @WithLock on Jobs.report was skipped: ${error.message}`]);
    expect(error.message).toContain('"report"');
    const withoutDebug = logTo(
      levels(() => () => undefined),
      new ManualClock(0),
    );
    expect(() => withoutDebug.skipped?.('tryAcquire', error)).not.toThrow();
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

  it('are written at a growing interval after that, the last one with the number of those that were left out', async () => {
    const { clock, lines, say } = setUp();
    for (let i = 0; i < 1_500; i++) {
      say(`line ${i}`);
      await clock.advance(10);
    }
    expect(lines.slice(0, 7)).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((i) => `line ${i}`),
      expect.stringMatching(/^line 10\d \(\d\d more changes were left out\)$/),
    ]);
    expect(lines.length).toBeLessThan(12);
    await clock.advance(60_000);
    expect(lines.at(-1)).toMatch(/^line 1499 /);
  });

  it('do not keep the lines of another subject back', async () => {
    const { lines, say } = setUp();
    for (let i = 0; i < 50; i++) say('storm');
    say('calm', 'b');
    expect(lines.at(-1)).toBe('calm');
    await Promise.resolve();
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
    [CronExpression.EVERY_10_MINUTES, 10 * MINUTE],
    [CronExpression.EVERY_HOUR, HOUR],
    [CronExpression.EVERY_2_HOURS, 2 * HOUR],
    [CronExpression.EVERY_DAY_AT_1AM, 24 * HOUR],
    [CronExpression.MONDAY_TO_FRIDAY_AT_9AM, 24 * HOUR],
    ['0,50 * * * * *', 10 * SECOND],
    ['59,0 * * * * *', SECOND],
    ['*/7 * * * *', 4 * MINUTE],
    ['0 10-12 * * * *', MINUTE],
    ['0 5/20 * * * *', 20 * MINUTE],
    ['30 2 * * *', 24 * HOUR],
    ['0 9,17 * * *', 8 * HOUR],
  ])('of %j is the smallest difference of two ticks', (expression, period) =>
    expect(shortestPeriod(expression)).toBe(period),
  );

  it.each(['', 'tomorrow', '@daily', '* * *', 'x * * * * *', '* * * * * * *', '61 * * * * *'])(
    'is unknown for %j, which is another kind of schedule',
    (expression) => expect(shortestPeriod(expression)).toBeUndefined(),
  );
});
