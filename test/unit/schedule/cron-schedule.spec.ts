import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { CronTime } from 'cron';
import { CronSchedule, IntervalSchedule } from '../../../lib/schedule/cron-schedule.js';
import { fc } from '../../support/properties.js';
import { shareOf } from '../../support/share.js';

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
  it.each([
    ['30 1,2 * * *', '2026-10-24T22:00Z', ['2026-10-24T23:30', '2026-10-25T00:30', '2026-10-26T00:30'].join()],
    ['0 */2 * * *', '2026-10-24T22:30Z', ['2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T03:00'].join()],
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

  it('takes months and days of the week by name', () => {
    expect(ticks(new CronSchedule('0 0 1 FEB,apr *', 'UTC'), '2026-01-01T00:00Z', 2)).toEqual([
      '2026-02-01T00:00',
      '2026-04-01T00:00',
    ]);
    expect(ticks(new CronSchedule('0 0 * * Mon', 'UTC'), '2026-01-01T00:00Z', 1)).toEqual(['2026-01-05T00:00']);
  });

  it.each(['61 * * * *', 'at noon', '* *', '0 0 30 2 *'])('refuses %s', (expression) =>
    expect(() => new CronSchedule(expression, 'UTC')).toThrow(),
  );
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

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'America/Havana', 'Australia/Lord_Howe', 'Africa/Casablanca'],
  ...['Asia/Tehran', 'Pacific/Apia', 'America/Santiago', 'Asia/Beirut', 'America/Sao_Paulo', 'Antarctica/Troll'],
];

/** A field of an expression, as a text and as its values. */
interface Field {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

function field(low: number, high: number): fc.Arbitrary<Field> {
  const bounds = fc.tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }));
  const steps = fc.integer({ min: 1, max: high - low });
  const of = (text: string, values: readonly number[]): Field => ({ text, values: new Set(values) });
  return fc.oneof(
    fc.constant(of('*', range(low, high))),
    steps.map((step) => of(`*/${step}`, range(low, high, step))),
    bounds.map(([one]) => of(`${one}`, [one])),
    bounds.map(([one, other]) => of(`${one},${other}`, [one, other])),
    fc.tuple(bounds, steps).map(([[one], step]) => of(`${one}/${step}`, range(one, high, step))),
    bounds.map(([one, other]) => {
      const [from, to] = one < other ? [one, other] : [other, one];
      return of(`${from}-${to}`, range(from, to));
    }),
  );
}

const time = fc.tuple(field(0, 59), field(0, 59), field(0, 23));
const date = fc.tuple(field(1, 31), field(1, 12), field(0, 7));
const expression = fc.tuple(time, date).map((fields) => fields.flat().map(({ text }) => text).join(' ')); // prettier-ignore
const zone = fc.constantFrom(...ZONES);
const moment = fc.integer({ min: Date.UTC(2009, 0, 1) / SECOND, max: Date.UTC(2030, 0, 1) / SECOND }).map((s) => s * SECOND); // prettier-ignore

/** The wall clock of a zone, as if it showed UTC; not as the library reads it. */
function wallClockOf(timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`);
}

interface Change {
  readonly timeZone: string;
  readonly at: number;
}

const AROUND = 1.75 * HOUR;

/** All changes of wall clocks in some years. */
function changesOf(timeZone: string): Change[] {
  const wall = wallClockOf(timeZone);
  const differs = (at: number, offset: number): boolean => wall(at) - at !== offset;
  const changes: Change[] = [];
  for (const year of [2011, 2016, 2021, 2026]) {
    for (let day = Date.UTC(year, 0, 1); day < Date.UTC(year + 1, 0, 1); day += DAY) {
      const offset = wall(day) - day;
      if (!differs(day + DAY, offset)) continue;
      let [before, at] = [day / SECOND, (day + DAY) / SECOND];
      while (at - before > 1) {
        const middle = Math.floor((before + at) / 2);
        if (differs(middle * SECOND, offset)) at = middle;
        else before = middle;
      }
      changes.push({ timeZone, at: at * SECOND });
    }
  }
  return changes;
}

// Protocol 12.1
describe('The ticks of any cron expression', () => {
  afterEach(() => void jest.restoreAllMocks());

  it('do not depend on the time now, and not on what was asked before', () => {
    const nows = fc.array(fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        expression,
        zone,
        fc.array(moment, { minLength: 1, maxLength: 4 }),
        nows,
        (text, timeZone, moments, times) => {
          const schedule = tryTo(() => new CronSchedule(text, timeZone));
          fc.pre(schedule !== undefined);
          const once = moments.map((at) => [schedule.next(at), schedule.last(at)]);
          for (const now of times) {
            jest.spyOn(Date, 'now').mockReturnValue(now);
            const again = new CronSchedule(text, timeZone);
            const backwards = moments.toReversed().map((at) => [again.next(at), again.last(at)]);
            expect(backwards.toReversed()).toEqual(once);
            expect(moments.map((at) => [schedule.next(at), schedule.last(at)])).toEqual(once);
          }
          jest.restoreAllMocks();
        },
      ),
      { numRuns: shareOf(150) },
    );
  }, 60_000);

  it('are the same in both directions, and none is passed over', () => {
    fc.assert(
      fc.property(expression, zone, moment, fc.double({ min: 0, max: 1, noNaN: true }), (text, timeZone, at, share) => {
        const schedule = tryTo(() => new CronSchedule(text, timeZone));
        fc.pre(schedule !== undefined);
        const tick = schedule.next(at);
        const following = schedule.next(tick);
        expect(tick).toBeGreaterThan(at);
        expect(following).toBeGreaterThan(tick);
        const between = Math.floor(tick + (following - tick - 1) * share);
        expect(schedule.last(between)).toBe(tick);
        expect(schedule.next(between)).toBe(following);
        expect(schedule.last(tick - 1)).toBeLessThanOrEqual(at);
        expect(schedule.next(schedule.last(at))).toBe(tick);
      }),
      { numRuns: shareOf(400) },
    );
  }, 60_000);

  it('are those of the package cron, except around changes of the wall clock', () => {
    fc.assert(
      fc.property(expression, zone, moment, (text, timeZone, at) => {
        const expected = tryTo(() => new CronTime(text, timeZone).getNextDateFrom(new Date(at), timeZone).toMillis());
        fc.pre(expected !== undefined && !isNearChange(timeZone, at) && !isNearChange(timeZone, expected));
        expect(new CronSchedule(text, timeZone).next(at)).toBe(expected);
      }),
      { numRuns: shareOf(400) },
    );
  }, 60_000);

  it('are, second by second, those that the rules for changes of the wall clock name', () => {
    const changes = ZONES.flatMap(changesOf);
    expect(changes.length).toBeGreaterThan(60);
    expect(changes.filter(({ at }) => at % MINUTE !== 0)).toEqual([]);
    fc.assert(
      fc.property(time, fc.nat(changes.length - 1), fc.nat(2 * AROUND), (fields, index, later) => {
        const { timeZone, at } = changes[index] as Change;
        const expression = `${fields.map(({ text }) => text).join(' ')} * * *`;
        const schedule = new CronSchedule(expression, timeZone);
        const from = at - AROUND;
        const expected = ticksBySecond(fields, at, wallClockOf(timeZone));
        const found: number[] = [];
        for (let tick = schedule.next(from - 1); tick <= at + AROUND; tick = schedule.next(tick)) found.push(tick);
        expectTicks(found, expected);
        const backwards: number[] = [];
        for (let tick = schedule.last(at + AROUND); tick >= from; tick = schedule.last(tick - 1)) backwards.push(tick);
        expectTicks(backwards.reverse(), expected);
        const [other, moment] = [new CronSchedule(expression, timeZone), from + later];
        const next = expected.find((tick) => tick > moment);
        if (next !== undefined) expect(other.next(moment)).toBe(next);
        const last = expected.findLast((tick) => tick <= moment);
        if (last !== undefined) expect(other.last(moment)).toBe(last);
      }),
      { numRuns: shareOf(60) },
    );
  }, 60_000);
});

/** The rules, as they are documented, at each second. */
function ticksBySecond(
  [seconds, minutes, hours]: readonly [Field, Field, Field],
  at: number,
  wallAt: (at: number) => number,
): number[] {
  // Wall clocks change at whole minutes.
  const walls = range(at - AROUND, at + AROUND - MINUTE, MINUTE)
    .map(wallAt)
    .flatMap((minute) => range(minute, minute + MINUTE - SECOND, SECOND))
    .concat(wallAt(at + AROUND));
  const matches = (wall: number): boolean =>
    seconds.values.has((wall / SECOND) % 60) &&
    minutes.values.has(Math.floor(wall / MINUTE) % 60) &&
    hours.values.has(Math.floor(wall / HOUR) % 24);
  const isPeriodic = minutes.text.startsWith('*') || hours.text.startsWith('*');
  const changesAt = AROUND / SECOND;
  const latest = (walls[changesAt - 1] as number) + SECOND;
  const gap = range(latest, (walls[changesAt] as number) - SECOND, SECOND);
  return walls.flatMap((wall, index) => {
    const isEndOfGap = index === changesAt && gap.some(matches);
    const isRepeated = !isPeriodic && index >= changesAt && wall < latest;
    return isEndOfGap || (matches(wall) && !isRepeated) ? [at + (index - changesAt) * SECOND] : [];
  });
}

/** Within a day and a half of a change, `cron` has rules of its own. */
function isNearChange(timeZone: string, at: number): boolean {
  const wall = wallClockOf(timeZone);
  const offsets = [-1.5 * DAY, 0, 1.5 * DAY].map((distance) => wall(at + distance) - at - distance);
  return new Set(offsets).size > 1;
}

/** Readable if they differ, and there may be thousands. */
function expectTicks(found: readonly number[], expected: readonly number[]): void {
  const show = (ticks: readonly number[]): string[] => ticks.map((tick) => new Date(tick).toISOString());
  if (found.join() !== expected.join()) expect(show(found)).toEqual(show(expected));
}

function tryTo<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
