// node run-recipe.mjs <recipe> <url>: two holders of a lock sell one item each by a recipe, and the first one tries again, too
// late. Prints what came of it.
import { Test } from '@nestjs/testing';
import { LockService, RedlockModule } from 'nestjs-redlock';
import { fenceMigration } from 'nestjs-redlock/sql';

const [, , recipe, url] = process.argv;
const { open } = await import(new URL(`recipes/${recipe}.mjs`, import.meta.url).href);
const database = await open(url);
const module = await Test.createTestingModule({ imports: [RedlockModule.forRoot({ masters: 'memory' })] }).compile();
const locks = module.get(LockService);
const outcome = async (work) => {
  try {
    await work();
    return 'sold';
  } catch (error) {
    return error.code ?? String(error);
  }
};
const holder = async () => {
  const lock = await locks.acquire('stock:teapot');
  await lock.fencingToken();
  return lock;
};
// As a holder sees its lock whose clock stands still: only the table knows better.
const unaware = ({ resources, mode, fence }) => ({ resources, mode, fence, assertHeld() {} });

for (const sql of ['DROP TABLE IF EXISTS redlock_fence', 'DROP TABLE IF EXISTS stock']) await database.execute(sql);
for (const sql of fenceMigration(database.dialect)) await database.execute(sql);
await database.execute('CREATE TABLE stock (item varchar(10) PRIMARY KEY, count int NOT NULL)');
await database.execute("INSERT INTO stock VALUES ('teapot', 10)");

const first = await holder();
const outcomes = { first: await outcome(() => database.sell(first)) };
await first.release();
const second = await holder();
outcomes.second = await outcome(() => database.sell(second));
outcomes.late = await outcome(() => database.sell(unaware(first)));
outcomes.outside = await outcome(() => database.outside(second));
outcomes.again = await outcome(() => database.sell(second));
outcomes.count = await database.count();
await second.release();
await module.close();
await database.close();
console.log(JSON.stringify(outcomes));
