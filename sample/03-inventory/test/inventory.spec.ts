import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { type Lock, LockService, RedlockModule } from 'nestjs-redlock';
import { startPostgres } from '../../../scripts/database-servers.mjs';
import { findPostgres } from '../../../scripts/ensure-postgres.mjs';
import { readConfig, TTL } from '../src/config.js';
import type { Database } from '../src/database/database.js';
import { openDatabase } from '../src/database/open-database.js';
import { run, type Surroundings, surround } from '../src/show/show.js';
import { startDatabase, type StartDatabase, startSqlite } from '../src/show/start-database.js';
import { StaleWriteError } from '../src/stock/stale-write.error.js';
import { StockTable } from '../src/stock/stock.table.js';

const programs = findPostgres();
const databases: [string, StartDatabase][] = [['SQLite', startSqlite]];
if (programs) databases.push(['PostgreSQL', () => startPostgres(programs)]);
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

    it('overwrites the sales of other instances without the fence', async () => {
      const result = await run(surroundings, false, () => {});
      expect(result.paused).toBeGreaterThan(TTL);
      expect(result.count).toBeGreaterThan(result.expected);
    }, 60_000);
  });

  describe('a row under a fence', () => {
    let database: Database;
    let table: StockTable;
    let module: TestingModule;

    beforeAll(async () => {
      const config = readConfig(surroundings.env);
      database = await openDatabase(config.database);
      table = new StockTable(database, config);
      await table.onModuleInit();
      module = await Test.createTestingModule({ imports: [RedlockModule.forRoot({ masters: 'memory' })] }).compile();
    });
    afterAll(async () => {
      await module.close();
      await database.onApplicationShutdown();
    });

    /** A holder whose lock ends without its knowledge, because its clock stands still, and the next one. */
    async function twoHolders(item: string): Promise<[Lock, Lock]> {
      const locks = module.get(LockService);
      const late = await locks.acquire(`stock:${item}`);
      await late.fencingToken();
      await late.release();
      const next = await locks.acquire(`stock:${item}`);
      await next.fencingToken();
      const { resources, mode, fence } = late;
      return [{ resources, mode, fence, assertHeld: () => undefined } as Lock, next];
    }

    it('accepts several transactions under one lock', async () => {
      const [, lock] = await twoHolders('a');
      await table.write('a', 10, lock);
      await expect(table.read('a', lock)).resolves.toBe(10);
      await table.write('a', 9, lock);
      await expect(table.look('a')).resolves.toBe(9);
    });

    it('refuses a late write even before the next holder has written anything', async () => {
      const [late, next] = await twoHolders('b');
      await table.write('b', 10, late);
      await expect(table.read('b', next)).resolves.toBe(10);
      await expect(table.write('b', 9, late)).rejects.toThrow(StaleWriteError);
      await table.write('b', 7, next);
      await expect(table.write('b', 9, late)).rejects.toThrow(StaleWriteError);
      await expect(table.look('b')).resolves.toBe(7);
    });

    it('refuses a write under a lock that the clock shows as lost, before another holder is there', async () => {
      const lock = await module.get(LockService).acquire('stock:d');
      await lock.fencingToken();
      await lock.release();
      await expect(table.write('d', 9, lock)).rejects.toThrow(StaleWriteError);
    });

    it('refuses a late read, too', async () => {
      const [late, next] = await twoHolders('c');
      await table.write('c', 10, next);
      await expect(table.read('c', late)).rejects.toThrow(StaleWriteError);
      await expect(table.look('c')).resolves.toBe(10);
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
