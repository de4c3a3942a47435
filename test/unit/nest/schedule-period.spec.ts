import { describe, expect, it } from '@jest/globals';
import { CronExpression } from '@nestjs/schedule';
import { shortestPeriod } from '../../../lib/nest/schedule-period.js';

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
  ])('of %j is the smallest difference of two ticks', (expression, period) => {
    expect(shortestPeriod(expression)).toBe(period);
  });

  it.each(['', 'tomorrow', '@daily', '* * *', 'x * * * * *', '* * * * * * *', '61 * * * * *'])(
    'is unknown for %j, which is another kind of schedule',
    (expression) => expect(shortestPeriod(expression)).toBeUndefined(),
  );
});
