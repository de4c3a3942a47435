// Connections to the databases that are tortured, as far as their holders differ.
import mysql from 'mysql2/promise';
import pg from 'pg';

export type Dialect = 'postgres' | 'mysql';

export const ITEMS = ['a', 'b', 'c'];

/** What an instance is started with. */
export interface FencedTask {
  readonly dialect: Dialect;
  readonly url: string;
  readonly masters: readonly string[];
  readonly ttl: number;
  readonly fenced: boolean;
  readonly levels: readonly string[];
}

type Rows = readonly Readonly<Record<string, number | string>>[];

export interface Session {
  begin(level: string): Promise<unknown>;
  query(sql: string, params?: unknown[]): Promise<unknown>;
  rows(sql: string): Promise<Rows>;
  close(): Promise<void>;
}

/** How long a transaction may be idle before the server ends it: shorter and longer than a holder is stopped. */
const IDLE = { postgres: ['400ms', '5s'], mysql: ['1', '5'] };

/** @param patience 0 or 1: whether the server waits for a holder that stopped inside its transaction */
export async function openSession(dialect: Dialect, url: string, patience: number): Promise<Session> {
  const idle = IDLE[dialect][patience];
  if (dialect === 'postgres') {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    await client.query(`SET idle_in_transaction_session_timeout = '${idle}'`);
    return {
      begin: (level) => client.query(`BEGIN ISOLATION LEVEL ${level}`),
      query: (sql, params) => client.query(sql, params),
      rows: async (sql) => (await client.query(sql)).rows as Rows,
      close: () => client.end(),
    };
  }
  const connection = await mysql.createConnection(url);
  connection.on('error', () => undefined);
  await connection.query(`SET SESSION idle_transaction_timeout = ${idle}`);
  return {
    begin: async (level) => {
      await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
      await connection.query('START TRANSACTION');
    },
    query: (sql, params) => connection.query(sql, params),
    rows: async (sql) => (await connection.query(sql))[0] as unknown as Rows,
    close: () => connection.end(),
  };
}
