import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { findPostgres } from '../../../scripts/ensure-postgres.mjs';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { Postgres } from '../../03-inventory/src/show/postgres.js';
import { openDatabase } from '../src/database/open-database.js';
import { Instance } from './instance.js';

let master: RedisServer;
const instances: Instance[] = [];

beforeAll(async () => {
  master = await RedisServer.start();
}, 60_000);
afterAll(async () => {
  await master.stop();
});
afterEach(async () => {
  await Promise.all(instances.splice(0).map((instance) => instance.stop()));
});

interface Outcome {
  /** The outcomes of the two sales. */
  sales: string[];
  charged: string[];
  left: number;
}

/** Runs two sales in two instances. The second one begins when the first one is about to commit. */
async function sellTwo(lock: 'outside' | 'inside', url: string, count: number): Promise<Outcome> {
  const database = await openDatabase(url);
  await database.query('CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count integer NOT NULL)');
  await database.query('DELETE FROM stock');
  await database.query('INSERT INTO stock VALUES ($1, $2)', 'teapot', count);
  const charged: string[] = [];
  const start = async (): Promise<Instance> => {
    const instance = await Instance.start({ DATABASE_URL: url, REDLOCK_MASTERS: master.url, LOCK: lock });
    instances.push(instance);
    instance.on('charges', (customer) => charged.push(customer));
    return instance;
  };
  const [first, second] = await Promise.all([start(), start()]);

  const isWaiting = first.hear('wants to commit');
  const isSold = first.hear('is done');
  first.send('sell', 'anna');
  await Promise.race([isWaiting, isSold]);

  second.on('wants to commit', () => second.send('commit'));
  const isThere = second.hear('found it locked', 'has read the stock');
  const isSoldToo = second.hear('is done');
  second.send('sell', 'bert');
  await isThere;
  first.send('commit');

  const sales = [await isSold, await isSoldToo];
  const [stock] = await database.query<{ count: number }>('SELECT count FROM stock');
  await database.close();
  return { sales, charged, left: stock!.count };
}

/** A database that lives as long as its tests. */
interface Running {
  url: string;
  stop(): Promise<void>;
}

async function startSqlite(): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'transactional-'));
  return { url: `file:${join(folder, 'stock.db')}`, stop: async () => rmSync(folder, { recursive: true }) };
}

const programs = findPostgres();
const databases: [string, () => Promise<Running>][] = [['SQLite', startSqlite]];
if (programs) databases.push(['PostgreSQL', () => Postgres.start(programs)]);
else console.log('No PostgreSQL on this machine: tested on SQLite only');

describe.each(databases)('On %s', (name, start) => {
  let database: Running;

  beforeAll(async () => {
    database = await start();
  }, 60_000);
  afterAll(async () => {
    await database.stop();
  });

  describe('with the lock outside the transaction', () => {
    it('the last item is sold once, and charged once', async () => {
      await expect(sellTwo('outside', database.url, 1)).resolves.toEqual({
        sales: ['sold, 0 left', 'teapot is sold out'],
        charged: ['anna'],
        left: 0,
      });
    }, 60_000);

    it('two sales take two items', async () => {
      await expect(sellTwo('outside', database.url, 10)).resolves.toEqual({
        sales: ['sold, 9 left', 'sold, 8 left'],
        charged: ['anna', 'bert'],
        left: 8,
      });
    }, 60_000);
  });

  describe('with the lock inside the transaction', () => {
    // SQLite refuses a write that depends on an old read. By then it is too late, because the customer has been
    // charged.
    const secondSale = (left: number): unknown =>
      name === 'SQLite' ? expect.stringMatching(/database is locked/) : `sold, ${left} left`;

    it('the last item is charged twice', async () => {
      await expect(sellTwo('inside', database.url, 1)).resolves.toEqual({
        sales: ['sold, 0 left', secondSale(0)],
        charged: ['anna', 'bert'],
        left: 0,
      });
    }, 60_000);

    it('two sales take one item', async () => {
      await expect(sellTwo('inside', database.url, 10)).resolves.toEqual({
        sales: ['sold, 9 left', secondSale(9)],
        charged: ['anna', 'bert'],
        left: 9,
      });
    }, 60_000);
  });
});
