import type { TransactionalAdapter } from '@nestjs-cls/transactional';
import { Database, type Sql } from './database.js';

/**
 * Tells `@Transactional` how this database begins a transaction. For Prisma, TypeORM, Drizzle and others there are
 * packages `@nestjs-cls/transactional-adapter-...`, and nothing is to be written.
 */
export class SqlAdapter implements TransactionalAdapter<Database, Sql, unknown> {
  readonly connectionToken = Database;
  // An adapter of plain SQL has no client whose methods could be passed through.
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
