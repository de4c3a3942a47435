import type { TransactionalAdapter } from '@nestjs-cls/transactional';
import { Database, type Sql } from './database.js';

/**
 * Defines for `@Transactional` how this database begins a transaction. Prisma, TypeORM, Drizzle and others have
 * ready-made packages `@nestjs-cls/transactional-adapter-...`.
 */
export class SqlAdapter implements TransactionalAdapter<Database, Sql, unknown> {
  readonly connectionToken = Database;
  // An adapter for plain SQL has no client whose methods it could proxy.
  readonly supportsTransactionProxy = false;

  readonly optionsFactory = (database: Database) => ({
    wrapWithTransaction: <T>(_options: unknown, work: () => Promise<T>, setTransaction: (sql: Sql) => void) =>
      database.transaction((sql) => {
        setTransaction(sql);
        return work();
      }),
    getFallbackInstance: (): Sql => database,
  });
}
