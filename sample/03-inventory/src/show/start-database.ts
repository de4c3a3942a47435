import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../../../../scripts/database-servers.mjs';
import { ensurePostgres } from '../../../../scripts/ensure-postgres.mjs';

/** A database that lives as long as the demonstration. */
export interface RunningDatabase {
  /** In the format of `DATABASE_URL`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** @param log receives which database is used, and why */
export type StartDatabase = (log: (line: string) => void) => Promise<RunningDatabase>;

/** Uses `DATABASE_URL`, or else a PostgreSQL server that is installed or can be, or else an SQLite file. */
export async function startDatabase(
  log: (line: string) => void,
  ensure: typeof ensurePostgres = ensurePostgres,
): Promise<RunningDatabase> {
  const { DATABASE_URL } = process.env;
  if (DATABASE_URL) {
    log('Database: that of DATABASE_URL.');
    return { url: DATABASE_URL, stop: () => Promise.resolve() };
  }
  const programs = await ensure(log);
  if (programs) {
    log(`Database: PostgreSQL, since it is installed (${programs}).`);
    return startPostgres(programs);
  }
  log('Database: an SQLite file, since there is no PostgreSQL.');
  return startSqlite(log);
}

/** Uses a file in a temporary folder. */
export const startSqlite: StartDatabase = () => {
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-'));
  const stop = (): Promise<void> => {
    rmSync(folder, { recursive: true, force: true });
    return Promise.resolve();
  };
  return Promise.resolve({ url: `file:${join(folder, 'stock.db')}`, stop });
};
