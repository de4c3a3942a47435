import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import { fenceMigration } from 'nestjs-redlock/sql';
import { startPostgres } from '../../../scripts/database-servers.mjs';
import { findPostgres } from '../../../scripts/ensure-postgres.mjs';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
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

export interface Outcome {
  /** The outcomes of the two sales. */
  sales: string[];
  charged: string[];
  left: number;
}

/** Runs two sales in two instances. The second one begins when the first one is about to commit. */
export async function sellTwo(lock: 'outside' | 'inside', url: string, count: number): Promise<Outcome> {
  const database = await openDatabase(url);
  await database.query('CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count integer NOT NULL)');
  for (const statement of fenceMigration(database.dialect)) await database.query(statement);
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
if (programs) databases.push(['PostgreSQL', () => startPostgres(programs)]);
else console.log('No PostgreSQL on this machine: tested on SQLite only');

/** Declares the tests of `declare` for each database, which lives as long as they do. */
export function describeDatabases(declare: (name: string, url: () => string) => void): void {
  describe.each(databases)('On %s', (name, start) => {
    let database: Running;

    beforeAll(async () => {
      database = await start();
    }, 60_000);
    afterAll(async () => {
      await database.stop();
    });

    declare(name, () => database.url);
  });
}
