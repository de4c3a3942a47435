import type { Database } from './database.js';
import { PostgresDatabase } from './postgres.database.js';

const FILE = 'file:';

/** @param url `postgres://...`, or `file:` and the path of an SQLite file */
export async function openDatabase(url: string): Promise<Database> {
  if (!url.startsWith(FILE)) return new PostgresDatabase(url);
  // Loaded on demand, because the driver does not have a binary for every platform.
  const { SqliteDatabase } = await import('./sqlite.database.js');
  return new SqliteDatabase(url.slice(FILE.length));
}
