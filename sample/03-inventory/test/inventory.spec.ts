import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findPostgres } from '../../../scripts/ensure-postgres.mjs';
import { readConfig, TTL } from '../src/config.js';
import type { Database } from '../src/database/database.js';
import { openDatabase } from '../src/database/open-database.js';
import { Postgres } from '../src/show/postgres.js';
import { run, type Surroundings, surround } from '../src/show/show.js';
import { startDatabase, type StartDatabase, startSqlite } from '../src/show/start-database.js';
import { StaleWriteError } from '../src/stock/stale-write.error.js';
import { StockTable } from '../src/stock/stock.table.js';

const programs = findPostgres();
const databases: [string, StartDatabase][] = [['SQLite', startSqlite]];
if (programs) databases.push(['PostgreSQL', () => Postgres.start(programs)]);
else console.log('No PostgreSQL on this machine: tested on SQLite only');

describe.each(databases)('On %s', (_, start) => {
  let surroundings: Surroundings;

  beforeAll(async () => {
    surroundings = await surround(() => {}, start);
  }, 60_000);

  afterAll(async () => {
    await surroundings.stop();
  });

  describe('a sale that was paused for longer than its lock lives', () => {
    it('is refused, and keeps the sales of other instances meanwhile', async () => {
      const result = await run(surroundings, true, () => {});
      expect(result.paused).toBeGreaterThan(TTL);
      expect(result.status).toBe(409);
      expect(result.message).toMatch(/the lock was lost before the write/);
      expect(result.count).toBe(result.expected);
    }, 60_000);

    it('overwrites the sales of other instances without the guard', async () => {
      const result = await run(surroundings, false, () => {});
      expect(result.paused).toBeGreaterThan(TTL);
      expect(result.count).toBeGreaterThan(result.expected);
    }, 60_000);
  });

  describe('a guarded row', () => {
    let database: Database;
    let table: StockTable;

    beforeAll(async () => {
      const config = readConfig(surroundings.env);
      database = await openDatabase(config.database);
      table = new StockTable(database, config);
      await table.onModuleInit();
    });
    afterAll(async () => {
      await database.onApplicationShutdown();
    });

    it('accepts several writes under one lock', async () => {
      await table.put('a', 1, 10);
      await expect(table.claim('a', 2)).resolves.toBe(10);
      await table.write('a', 2, 9);
      await table.write('a', 2, 8);
      await expect(table.read('a')).resolves.toBe(8);
    });

    it('refuses a late write even before its successor has written anything', async () => {
      await table.put('b', 1, 10);
      await table.claim('b', 2);
      await expect(table.claim('b', 3)).resolves.toBe(10);
      await expect(table.write('b', 2, 9)).rejects.toThrow(StaleWriteError);
      await table.write('b', 3, 7);
      await expect(table.write('b', 2, 9)).rejects.toThrow(StaleWriteError);
      await expect(table.read('b')).resolves.toBe(7);
    });

    it('refuses a late claim and a late upsert', async () => {
      await table.put('c', 5, 10);
      await expect(table.claim('c', 4)).rejects.toThrow(StaleWriteError);
      await expect(table.put('c', 4, 1)).rejects.toThrow(StaleWriteError);
      await expect(table.read('c')).resolves.toBe(10);
    });

    it('distinguishes tokens of any size', async () => {
      const token = Number.MAX_SAFE_INTEGER - 1;
      await table.put('d', token, 1);
      await expect(table.put('d', token - 1, 2)).rejects.toThrow(StaleWriteError);
      await table.put('d', token + 1, 3);
      await expect(table.read('d')).resolves.toBe(3);
    });
  });
});

describe('Without PostgreSQL', () => {
  it('the demonstration uses an SQLite file, reports it, and leaves nothing behind', async () => {
    const { DATABASE_URL } = process.env;
    delete process.env.DATABASE_URL;
    const lines: string[] = [];
    try {
      const started = await startDatabase(
        (line) => lines.push(line),
        () => Promise.resolve(undefined),
      );
      const { url } = started;
      const database = await openDatabase(url);
      await database.create('CREATE TABLE made (item text)');
      await database.onApplicationShutdown();
      expect(existsSync(url.slice('file:'.length))).toBe(true);
      await started.stop();
      expect(existsSync(dirname(url.slice('file:'.length)))).toBe(false);
      expect(lines).toEqual([expect.stringMatching(/SQLite.*since there is no PostgreSQL/)]);
    } finally {
      if (DATABASE_URL !== undefined) process.env.DATABASE_URL = DATABASE_URL;
    }
  });
});
