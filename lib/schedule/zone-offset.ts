/** How far the wall clocks of a time zone are ahead of UTC at a moment, in milliseconds. Depends on nothing else. */
export type ZoneOffset = (moment: number) => number;

/** A fixed difference, such as `UTC+3`, which the package `cron` takes beside the names of time zones. */
const FIXED = /^utc(?:([+-]\d{1,2})(?::(\d\d))?)?$/i;

/** @throws if there is no such time zone */
export function zoneOffsetOf(timeZone: string | undefined): ZoneOffset {
  const fixed = timeZone === undefined ? undefined : FIXED.exec(timeZone);
  if (fixed) {
    const [, hours = '+0', minutes = '0'] = fixed;
    const offset = (Number(hours) * 60 + (hours.startsWith('-') ? -1 : 1) * Number(minutes)) * 60_000;
    return () => offset;
  }
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  return (moment) => {
    const fields = format.formatToParts(moment).filter(({ type }) => type !== 'literal');
    const [month = 0, day = 0, year = 0, ...time] = fields.map(({ value }) => Number(value));
    const [hour = 0, minute = 0, second = 0] = time;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(moment / 1_000) * 1_000;
  };
}
