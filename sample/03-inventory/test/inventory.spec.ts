import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readConfig, TTL } from '../src/config.js';
import { Database } from '../src/database.js';
import { run, type Surroundings, surround } from '../src/show/show.js';
import { StaleWriteError } from '../src/stock/stale-write.error.js';
import { StockTable } from '../src/stock/stock.table.js';

let surroundings: Surroundings;

beforeAll(async () => {
  surroundings = await surround(() => {});
}, 60_000);

afterAll(async () => {
  await surroundings.stop();
});

describe('a sale that was paused for longer than its lock lives', () => {
  it('is refused, and what others have sold meanwhile stays sold', async () => {
    const result = await run(surroundings, true, () => {});
    expect(result.paused).toBeGreaterThan(TTL);
    expect(result.status).toBe(409);
    expect(result.message).toMatch(/the lock was lost before the write/);
    expect(result.count).toBe(result.expected);
  }, 60_000);

  it('overwrites what others have sold meanwhile without the guard', async () => {
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
    database = new Database(config);
    table = new StockTable(database, config);
    await table.onModuleInit();
  });
  afterAll(async () => {
    await database.onApplicationShutdown();
  });

  it('takes several writes under one lock', async () => {
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

  it('tells tokens of any size apart', async () => {
    const token = Number.MAX_SAFE_INTEGER - 1;
    await table.put('d', token, 1);
    await expect(table.put('d', token - 1, 2)).rejects.toThrow(StaleWriteError);
    await table.put('d', token + 1, 3);
    await expect(table.read('d')).resolves.toBe(3);
  });
});
