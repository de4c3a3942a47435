import { describe, expect, it } from '@jest/globals';
import type { FenceDialect } from '../../lib/sql/index.js';
import { SCHEDULES, T0 } from './support/fence-schedules.js';
import { Arena, fencedDatabases, type Mutation } from './support/fenced-databases.js';
import { shared } from '../support/shared.js';

/** Long enough for what waits at all, in milliseconds. */
const PATIENCE = 500;

/** What is left out of the statements, and what instead of it makes them valid. */
const CLAUSES: Readonly<Record<Exclude<FenceDialect, 'sqlite'>, readonly (readonly [string, Mutation])[]>> = {
  postgres: [
    ['the comparison of tokens', (sql) => sql.replace(/CASE WHEN f[^]*? END/, 'EXCLUDED.token')],
    ['equality, which lets a holder fence again', (sql) => sql.replace('<= EXCLUDED', '< EXCLUDED')],
    ['the update', (sql) => sql.replace(/DO UPDATE[^]*? END/, 'DO NOTHING')],
    ['the new token', (sql) => sql.replace('THEN EXCLUDED.token', 'THEN f.token')],
    ['the error', (sql) => sql.replace(/CAST\('redlock: stale[^]*? END/, 'f.token END')],
    ['the stored token in the error', (sql) => sql.replace(`|| f.token`, `|| 'another'`)],
    ['ON CONFLICT', (sql) => sql.replace(/ON CONFLICT[^]*?(?=RETURNING)/, '')],
    ['the token that was stored', (sql) => sql.replace('(SELECT token::text FROM f)', "'57'")],
    ['the transaction of the row', (sql) => sql.replace('(SELECT x FROM f) AS x', "'0' AS x")],
    ['the number of the outermost transaction', (sql) => sql.replace('xmin::text AS x', "'0' AS x")],
    [
      'the comparison of transactions',
      (sql) => sql.replace('pg_current_xact_id_if_assigned()::text', '(SELECT tx FROM now)'),
    ],
    ['the look at what was fenced before', (sql) => sql.replace('(line = ANY (lines))', 'true')],
    ['what was fenced before', (sql) => sql.replace('(line = ANY (lines))', 'false')],
    ['the poison', (sql) => (sql.includes('redlock: refused') ? 'SELECT 1' : sql)],
  ],
  mysql: [
    ['the savepoint, which autocommit does not keep', (sql) => (sql.includes('SAVEPOINT') ? 'SELECT 1' : sql)],
    ['the insert', (sql) => (sql.startsWith('INSERT') ? 'SELECT 1' : sql)],
    ['ON DUPLICATE KEY', (sql) => sql.replace(/ON DUPLICATE.*/, '')],
    ['FOR UPDATE', (sql) => sql.replace('FOR UPDATE', '')],
    [
      'the look by the eyes of the transaction',
      (sql) => (/AS fences FROM \S+ WHERE \S+ = \S+$/.test(sql) && !sql.includes('token') ? `${sql} FOR UPDATE` : sql),
    ],
    ['the stored token', (sql) => sql.replace('CAST(token AS CHAR)', "'0'")],
    ['the new token', (sql) => sql.replace('token = ?, ', 'token = GREATEST(0 * ?, token), ')],
    ['the count of fences', (sql) => sql.replace('fences + 1', 'fences')],
  ],
};

describe.each(fencedDatabases().map((database) => [database.name, database] as const))('On %s', (_name, database) => {
  const { dialect, levels } = database;
  const stage = shared(async () => Object.assign(await Arena.open(database), { patience: PATIENCE }));

  /** Titles of the schedules that do not end as they have to. */
  async function violations(mutation: Mutation): Promise<string[]> {
    const found = [];
    for (const level of levels) {
      for (const { title, run, expected, dialects = [dialect] } of SCHEDULES) {
        if (!dialects.includes(dialect)) continue;
        const arena = stage();
        arena.one.mutation = arena.two.mutation = (sql) => sql;
        await arena.reset(T0);
        arena.one.mutation = arena.two.mutation = mutation;
        const result = await run(arena, level).catch(String);
        if (!isEqual(result, expected(dialect, level))) found.push(`${level}: ${title}`);
      }
      if (found.length > 0) return found;
    }
    return found;
  }

  it('all schedules end as they have to with all clauses', async () => {
    await expect(violations((sql) => sql)).resolves.toEqual([]);
  }, 60_000);

  it.each(CLAUSES[dialect as keyof typeof CLAUSES])(
    'a schedule ends otherwise without %s',
    async (_clause, mutation) => {
      let isApplied = false;
      const noted: Mutation = (sql) => {
        const mutated = mutation(sql);
        isApplied ||= mutated !== sql;
        return mutated;
      };
      await expect(violations(noted)).resolves.not.toEqual([]);
      expect(isApplied).toBe(true);
    },
    60_000,
  );
});

function isEqual(one: unknown, other: unknown): boolean {
  try {
    expect(one).toEqual(other);
    return true;
  } catch {
    return false;
  }
}
