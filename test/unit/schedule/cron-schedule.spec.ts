import { describe, expect, it, jest } from '@jest/globals';
import { CronSchedule } from '../../../lib/schedule/cron-schedule.js';
import { IntervalSchedule } from '../../../lib/schedule/interval-schedule.js';

const at = (text: string): number => Date.parse(text);

/** The ticks of a schedule after a moment, as ISO strings in UTC. */
function ticks(schedule: CronSchedule, from: string, count: number): string[] {
  const found: string[] = [];
  for (let tick = at(from); found.length < count;) {
    tick = schedule.next(tick);
    found.push(new Date(tick).toISOString().slice(0, 16));
  }
  return found;
}

describe('A cron schedule', () => {
  it('ticks by the clocks of its time zone', () => {
    const schedule = new CronSchedule('0 3 * * *', 'Asia/Tokyo');
    expect(ticks(schedule, '2026-01-01T00:00Z', 2)).toEqual(['2026-01-01T18:00', '2026-01-02T18:00']);
  });

  it('ticks once, after the gap, for a time that is skipped in spring', () => {
    const schedule = new CronSchedule('30 2 * * *', 'Europe/Berlin');
    const expected = ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'];
    expect(ticks(schedule, '2026-03-28T00:00Z', 3)).toEqual(expected);
  });

  it('ticks once for a time that occurs twice in autumn, also for an instance that starts in between', () => {
    const schedule = new CronSchedule('30 2 * * *', 'Europe/Berlin');
    expect(ticks(schedule, '2026-10-24T12:00Z', 2)).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
    expect(ticks(schedule, '2026-10-25T01:10Z', 1)).toEqual(['2026-10-26T01:30']);
    expect(schedule.last(at('2026-10-25T01:45Z'))).toBe(at('2026-10-25T00:30Z'));
  });

  it('ticks throughout the repeated hour if it ticks several times an hour', () => {
    const schedule = new CronSchedule('*/30 * * * *', 'Europe/Berlin');
    const expected = ['2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-25T02:00'];
    expect(ticks(schedule, '2026-10-25T00:00Z', 4)).toEqual(expected);
    expect(ticks(schedule, '2026-10-25T01:00Z', 1)).toEqual(['2026-10-25T01:30']);
  });

  it.each([
    ['30 1,2 * * *', '2026-10-24T22:00Z', ['2026-10-24T23:30', '2026-10-25T00:30', '2026-10-26T00:30'].join()],
    ['0 1-3 * * *', '2026-10-24T22:30Z', ['2026-10-24T23:00', '2026-10-25T00:00', '2026-10-25T02:00'].join()],
    ['0 3 * * *', '2026-10-24T22:00Z', ['2026-10-25T02:00', '2026-10-26T02:00'].join()],
    ['0 */2 * * *', '2026-10-24T22:30Z', ['2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T03:00'].join()],
    ['*/30 2 * * *', '2026-10-24T22:00Z', ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00'].join()],
    ['30 2,3 * * *', '2026-03-29T00:00Z', ['2026-03-29T01:00', '2026-03-29T01:30', '2026-03-30T00:30'].join()],
  ])('knows periods from times of day when the clocks in Berlin change: %s', (expression, from, expected) => {
    expect(ticks(new CronSchedule(expression, 'Europe/Berlin'), from, expected.split(',').length).join()).toBe(
      expected,
    );
  });

  it.each(['2026-01-15T00:00Z', '2026-07-15T00:00Z', '2026-10-25T01:30Z'])(
    'goes on in a repeated hour although another moment was asked about before, at %s',
    (now) => {
      jest.spyOn(Date, 'now').mockReturnValue(at(now));
      const schedule = new CronSchedule('*/10 * * * * *', 'Europe/Berlin');
      const changed = at('2026-10-25T01:00Z');
      schedule.last(changed + 4_000);
      expect(schedule.next(changed - 4_000)).toBe(changed);
      expect(schedule.next(changed)).toBe(changed + 10_000);
      expect(schedule.last(changed + 4_000)).toBe(changed);
      jest.restoreAllMocks();
    },
  );

  it('takes the fixed differences that the package cron takes as time zones', () => {
    expect(ticks(new CronSchedule('0 3 * * *', 'UTC+5:30'), '2026-01-01T00:00Z', 1)).toEqual(['2026-01-01T21:30']);
    expect(ticks(new CronSchedule('@weekdays', 'utc-3'), '2026-01-02T12:00Z', 1)).toEqual(['2026-01-05T03:00']);
  });

  it.each([
    ['* * * * * *', '2026-05-05T10:00:00.500Z', '2026-05-05T10:00:00Z'],
    ['0 * * * *', '2026-05-05T10:00:00.000Z', '2026-05-05T10:00:00Z'],
    ['0 * * * *', '2026-05-05T09:59:59.999Z', '2026-05-05T09:00:00Z'],
    ['* * 3 * * *', '2026-05-05T20:00:00.000Z', '2026-05-05T03:59:59Z'],
    ['0 3 1 1 *', '2026-05-05T10:00:00.000Z', '2026-01-01T03:00:00Z'],
    ['0 0 29 2 *', '2027-05-05T10:00:00.000Z', '2024-02-29T00:00:00Z'],
  ])('finds the last tick of %s at %s', (expression, now, expected) => {
    expect(new CronSchedule(expression, 'UTC').last(at(now))).toBe(at(expected));
  });

  it('gives the same ticks in both directions', () => {
    const schedule = new CronSchedule('*/7 1-3 * * *', 'Europe/Berlin');
    let tick = at('2026-10-24T00:00Z');
    for (let count = 0; count < 100; count++) {
      const next = schedule.next(tick);
      expect(schedule.last(next)).toBe(next);
      if (count > 0) expect(schedule.last(next - 1)).toBe(tick);
      tick = next;
    }
  });

  it.each(['61 * * * *', 'at noon', '* *', '0 0 30 2 *'])('refuses %s', (expression) => {
    expect(() => new CronSchedule(expression, 'UTC')).toThrow();
  });
});

describe('An interval', () => {
  const schedule = new IntervalSchedule(300_000);

  it('ticks at multiples of its period since the epoch', () => {
    expect(schedule.next(at('2026-05-05T10:03:20Z'))).toBe(at('2026-05-05T10:05Z'));
    expect(schedule.next(at('2026-05-05T10:05Z'))).toBe(at('2026-05-05T10:10Z'));
    expect(schedule.last(at('2026-05-05T10:05Z'))).toBe(at('2026-05-05T10:05Z'));
    expect(schedule.last(at('2026-05-05T10:04:59.999Z'))).toBe(at('2026-05-05T10:00Z'));
  });
});

describe('The ticks of a cron expression where clocks are set back', () => {
  it.each([
    ['*/15 * * * *', 'Australia/Lord_Howe', '2026-04-04T12:00:00Z'],
    ['45 * * * *', 'Australia/Lord_Howe', '2026-04-04T12:00:00Z'],
    ['*/15 * * * *', 'America/Santiago', '2026-04-05T01:00:00Z'],
    ['30 * * * *', 'Europe/Berlin', '2026-10-24T23:00:00Z'],
  ])('of %s in %s always come after the moment that is asked about', (expression, zone, from) => {
    const start = Date.parse(from);
    for (let minute = 0; minute < 5 * 60; minute += 25) {
      const schedule = new CronSchedule(expression, zone);
      const moment = start + minute * 60_000;
      expect(schedule.next(moment)).toBeGreaterThan(moment);
      expect(schedule.last(moment)).toBeLessThanOrEqual(moment);
    }
  });
});
