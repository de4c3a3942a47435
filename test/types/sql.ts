// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import type { Lock } from 'nestjs-redlock';
import {
  fence,
  type FenceDialect,
  fenceMigration,
  type FenceOptions,
  fenceStatement,
  fenceSync,
  StaleTokenError,
} from 'nestjs-redlock/sql';
import type { Connection } from 'mysql2/promise';
import type { ClientBase } from 'pg';

declare const lock: Lock;
declare const client: ClientBase;
declare const connection: Connection;
declare const database: { exec(sql: string): void; prepare(sql: string): { all(...params: unknown[]): unknown[] } };

export async function fences(dialect: FenceDialect): Promise<void> {
  await fence(lock, (sql, params) => client.query(sql, params));
  await fence(lock, (sql, params) => connection.query(sql, params), { dialect, allowSavepoint: true });
  await fence([lock, lock], (sql, params) => client.query(sql, params));
  fenceSync(lock, database);
  const { sql, params, check } = fenceStatement(lock);
  check(database.prepare(sql).all(...params));
  for (const statement of fenceMigration('postgres')) await client.query(statement);
  const options: FenceOptions = {};
  // @ts-expect-error a fence needs the query function of a transaction
  await fence(lock, options);
  // @ts-expect-error there is no such dialect
  await fence(lock, (statement) => client.query(statement), { dialect: 'oracle' });
  // @ts-expect-error a resource is no lock
  await fence('stock:teapot', (statement) => client.query(statement));
}

export function shown(error: unknown): string {
  return error instanceof StaleTokenError ? `${error.token} < ${error.stored}: ${error.resources.join()}` : '';
}
