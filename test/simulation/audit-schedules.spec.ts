// Schedules in which an earlier version broke a guarantee, each with a name of its own.
import { describe, expect, it } from '@jest/globals';
import { AUDIT_SCHEDULES } from './audit-schedules.js';
import { play } from './run.js';

describe('The library on simulated masters', () => {
  it.each(AUDIT_SCHEDULES.map(({ name, schedule }) => [name, schedule] as const))('%s', async (_, schedule) => {
    const { property, message, broken } = await play(schedule);
    expect({ property, message, broken }).toEqual({ property: undefined, message: undefined, broken: [] });
  });
});
