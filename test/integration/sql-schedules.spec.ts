import { describe, expect, it } from '@jest/globals';
import { SCHEDULES, T0 } from './support/fence-schedules.js';
import { Arena, fencedDatabases } from './support/fenced-databases.js';
import { shared } from '../support/shared.js';

describe.each(fencedDatabases().map((database) => [database.name, database] as const))('On %s', (_name, database) => {
  const { dialect, levels } = database;
  const arena = shared(() => Arena.open(database));

  describe.each(levels)('at %s', (level) => {
    const schedules = SCHEDULES.filter(({ dialects = [dialect] }) => dialects.includes(dialect));

    it.each(schedules.map((schedule) => [schedule.title, schedule] as const))('%s', async (_title, schedule) => {
      for (const token of [T0, undefined]) {
        await arena().reset(token);
        expect(await schedule.run(arena(), level)).toEqual(schedule.expected(dialect, level));
      }
    });
  });
});
