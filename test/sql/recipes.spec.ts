import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DatabaseServer, startMariadb, startPostgres } from '../support/database-servers.mjs';
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { findMariadb, findPostgres } from '../../scripts/programs.mjs';
import { ensureSqlDrivers } from './drivers.mjs';
import { ensureNode } from '../matrix/command.mjs';

const PROGRAM = join(import.meta.dirname, 'run-recipe.mjs');
/** A version that has SQLite without a flag. */
const NODE_WITH_SQLITE = '22.23.3';

const [postgres, mariadb] = [findPostgres(), findMariadb()];
const SERVERS: Readonly<Record<string, (() => Promise<DatabaseServer>) | undefined>> = {
  PostgreSQL: postgres === undefined ? undefined : () => startPostgres(postgres),
  MariaDB: mariadb === undefined ? undefined : () => startMariadb(mariadb),
};
const RECIPES: Readonly<Record<string, readonly string[]>> = {
  PostgreSQL: ['pg', 'typeorm', 'prisma', 'knex', 'drizzle'],
  MariaDB: ['mysql2', 'typeorm', 'knex', 'drizzle'],
};

const missing: Record<string, string> = { ...(await ensureSqlDrivers()) };
const nodeWithSqlite = isBuiltin('node:sqlite')
  ? process.execPath
  : await ensureNode(NODE_WITH_SQLITE).catch(() => undefined);
if (!nodeWithSqlite)
  missing['node-sqlite'] = `Node ${process.versions.node} has no SQLite, and no other Node is to be had`;
for (const [recipe, reason] of Object.entries(missing))
  console.log(`Not run: the recipe for ${recipe}, because ${reason}`);

/** Two holders sell, one after the other; the first one sells again, and is refused; then the second one does. */
async function expectFenced(recipe: string, url: string, node = process.execPath): Promise<void> {
  const { stdout } = await promisify(execFile)(node, [PROGRAM, recipe, url], {
    // Without the options that jest needs.
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect(JSON.parse(stdout.trim().split('\n').at(-1)!)).toEqual({
    first: 'sold',
    second: 'sold',
    late: 'STALE_TOKEN',
    outside: 'LOCK_CONFIG',
    again: 'sold',
    count: 7,
  });
}

beforeAll(() => ensureBuild(), 120_000);

for (const [name, start] of Object.entries(SERVERS)) {
  if (!start) {
    console.log(`Not run: the recipes for ${name}, because it is not on this machine`);
    continue;
  }
  describe(`On ${name}`, () => {
    let server: DatabaseServer;
    beforeAll(async () => {
      server = await start();
    }, 60_000);
    afterAll(() => server.stop());

    it.each(RECIPES[name]!)('the recipe for %s refuses a late transaction, and one outside of any', (recipe) =>
      expectFenced(recipe, server.url),
    );
  });
}

describe('On SQLite', () => {
  const recipes = ['better-sqlite3', 'node-sqlite'].filter((recipe) => !(recipe in missing));

  it('there is a driver to show a recipe with', () => expect(recipes.length).toBeGreaterThan(0));

  for (const recipe of recipes) {
    it(`the recipe for ${recipe} refuses a late transaction, and one outside of any`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'fence-'));
      try {
        await expectFenced(recipe, join(folder, 'stock.db'), recipe === 'node-sqlite' ? nodeWithSqlite : undefined);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }
});
