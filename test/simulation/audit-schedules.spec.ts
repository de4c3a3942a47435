// Schedules in which an earlier version broke a guarantee, each with a name of its own.
import { describe, expect, it } from '@jest/globals';
import { AUDIT_SCHEDULES } from './audit-schedules.js';
import { farWaiter } from './far-waiter.js';
import { play } from './run.js';

describe('The library on simulated masters', () => {
  it.each(AUDIT_SCHEDULES.map(({ name, schedule }) => [name, schedule] as const))('%s', async (_, schedule) => {
    const { property, message, broken } = await play(schedule);
    expect({ property, message, broken }).toEqual({ property: undefined, message: undefined, broken: [] });
  });

  // Protocol 5.4
  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'lets a bounded number of later calls pass a waiter, whatever its round trip (seed %i)',
    async (seed) => {
      const { property, message } = await play(farWaiter(seed));
      expect({ property, message }).toEqual({ property: undefined, message: undefined });
    },
  );
});
