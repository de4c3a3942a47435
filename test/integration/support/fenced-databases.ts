import { createConnection, type Connection } from 'mysql2/promise';
import pg from 'pg';
import type { Lock } from '../../../lib/locks/lock.js';
import { fence, type FenceDialect, fenceMigration, type FenceOptions } from '../../../lib/sql/index.js';
import { type DatabaseServer, startMariadb, startPostgres } from '../../support/database-servers.mjs';
import { findMariadb, findPostgres } from '../../../scripts/programs.mjs';
import { eventually } from '../../support/eventually.js';

/** A lock with a token, as far as a fence looks at it. */
export function lockWith(token: number, keys: readonly string[] = ['lock:stock']): Lock {
  const resources = keys.map((key) => key.replace(/^lock:/, ''));
  return { resources, mode: 'exclusive', fence: { keys, token }, assertHeld: () => undefined } as unknown as Lock;
}

/** One connection to a database with the table `stock`, whose only row has a count. */
export abstract class Session {
  abstract send(sql: string, params?: readonly unknown[]): Promise<unknown>;
  abstract begin(level?: string): Promise<void>;
  abstract count(): Promise<number>;
  abstract close(): Promise<void>;

  async set(count: number): Promise<void> {
    await this.send(`UPDATE stock SET count = ${count}`);
  }

  async commit(): Promise<void> {
    await this.send('COMMIT');
  }

  async rollback(): Promise<void> {
    await this.send('ROLLBACK');
  }

  fence(token: number, options?: FenceOptions): Promise<void> {
    return this.fenceFor(lockWith(token), options);
  }

  fenceFor(lock: Lock | readonly Lock[], options?: FenceOptions): Promise<void> {
    return fence(lock, (sql, params) => this.send(sql, params), options);
  }
}

class PostgresSession extends Session {
  private constructor(readonly client: pg.Client) {
    super();
  }

  static async open(url: string): Promise<PostgresSession> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    // The server ends before its clients do.
    client.on('error', () => undefined);
    return new PostgresSession(client);
  }

  send(sql: string, params: readonly unknown[] = []): Promise<pg.QueryResult> {
    return this.client.query(sql, [...params]);
  }

  async begin(level = 'READ COMMITTED'): Promise<void> {
    await this.send(`BEGIN ISOLATION LEVEL ${level}`);
  }

  async count(): Promise<number> {
    const { rows } = await this.send('SELECT count FROM stock');
    return Number((rows as { count: string }[])[0]!.count);
  }

  close(): Promise<void> {
    return this.client.end();
  }
}

class MariadbSession extends Session {
  private constructor(readonly connection: Connection) {
    super();
  }

  static async open(url: string): Promise<MariadbSession> {
    return new MariadbSession(await createConnection(url));
  }

  send(sql: string, params: readonly unknown[] = []): Promise<unknown> {
    return this.connection.query(sql, [...params]);
  }

  async begin(level = 'READ COMMITTED'): Promise<void> {
    await this.send(`SET TRANSACTION ISOLATION LEVEL ${level}`);
    await this.send('START TRANSACTION');
  }

  async count(): Promise<number> {
    const [rows] = (await this.send('SELECT count FROM stock')) as [{ count: number }[]];
    return rows[0]!.count;
  }

  close(): Promise<void> {
    return this.connection.end();
  }
}

export interface FencedDatabase {
  readonly name: string;
  readonly dialect: FenceDialect;
  readonly levels: readonly string[];
  /** A statement whose only value says how many transactions wait for a row. */
  readonly waiting: string;
  readonly start: () => Promise<DatabaseServer>;
  readonly open: (url: string) => Promise<Session>;
}

const LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'];

/** The databases of this machine that lock rows. */
export function fencedDatabases(): FencedDatabase[] {
  const [postgres, mariadb] = [findPostgres(), findMariadb()];
  const databases: FencedDatabase[] = [];
  if (postgres) {
    databases.push({
      ...{ name: 'PostgreSQL', dialect: 'postgres', levels: LEVELS },
      waiting: `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
      start: () => startPostgres(postgres),
      open: (url) => PostgresSession.open(url),
    });
  } else console.log('No PostgreSQL on this machine: fences are not shown on it');
  if (mariadb) {
    databases.push({
      ...{ name: 'MariaDB', dialect: 'mysql', levels: ['READ UNCOMMITTED', ...LEVELS] },
      waiting: `SELECT VARIABLE_VALUE AS waiting FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits'`,
      start: () => startMariadb(mariadb),
      open: (url) => MariadbSession.open(url),
    });
  } else console.log('No MariaDB on this machine: fences are not shown on it');
  return databases;
}

/** A database with its server and three sessions: two for transactions, and one that looks. */
export class Arena {
  private constructor(
    readonly database: FencedDatabase,
    private readonly server: DatabaseServer,
    public one: Session,
    readonly two: Session,
    readonly watch: Session,
  ) {}

  static async open(database: FencedDatabase): Promise<Arena> {
    const server = await database.start();
    const [one, two, watch] = await Promise.all([1, 2, 3].map(() => database.open(server.url)));
    for (const sql of fenceMigration(database.dialect)) await watch!.send(sql);
    await watch!.send('CREATE TABLE stock (item varchar(10) PRIMARY KEY, count int NOT NULL)');
    return new Arena(database, server, one!, two!, watch!);
  }

  get url(): string {
    return this.server.url;
  }

  /** For a session that the server has ended. */
  async renewOne(): Promise<void> {
    this.one = await this.database.open(this.url);
  }

  /** @param token in the table; `undefined`: the resource was never fenced */
  async reset(token?: number): Promise<void> {
    // At the same time: one may wait for the other.
    await Promise.all([this.one.rollback(), this.two.rollback()]);
    await this.watch.send('DELETE FROM redlock_fence');
    await this.watch.send('DELETE FROM stock');
    await this.watch.send(`INSERT INTO stock VALUES ('teapot', 10)`);
    if (token !== undefined) {
      await this.one.begin('READ COMMITTED');
      await this.one.fence(token);
      await this.one.commit();
    }
  }

  /** Resolves when a transaction waits for a row of another. */
  async untilWaiting(): Promise<void> {
    await eventually(async () => {
      const answer = (await this.watch.send(this.database.waiting)) as { rows?: unknown[] } | unknown[][];
      const [row] = (Array.isArray(answer) ? answer[0] : answer.rows) as { waiting: number | string }[];
      return Number(row!.waiting) > 0;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.one, this.two, this.watch].map((session) => session.close()));
    await this.server.stop();
  }
}

/** How a promise ended: `passed`, the code of the fence's error, or that of the database's. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'passed',
    (error: unknown) => String((error as { code?: unknown }).code),
  );
}
