import { RedlockConfigError } from '../core/errors.js';
import { type FenceDialect } from './dialects.js';
import { LONGEST_NAME } from './fence-row.js';

// The trigger reads the setting that the fence leaves. An argument is the beginning of a resource that must be fenced.
const POSTGRES_TRIGGER = `CREATE OR REPLACE FUNCTION redlock_require_fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  fenced text[] := string_to_array(current_setting('redlock.fence', true), chr(10));
BEGIN
  IF fenced[1] IS DISTINCT FROM pg_current_xact_id()::text
    OR (TG_NARGS > 0 AND NOT EXISTS (SELECT FROM unnest(fenced[2:]) AS line WHERE starts_with(line, TG_ARGV[0])))
  THEN
    RAISE EXCEPTION 'redlock: % of "%" without a fence in this transaction', TG_OP, TG_TABLE_NAME
      USING HINT = 'Call fence(lock, query) with the query function of the same transaction first.';
  END IF;
  RETURN NULL;
END $$`;

const MIGRATIONS: Readonly<Record<FenceDialect, readonly string[]>> = {
  postgres: [
    'CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token bigint NOT NULL)',
    POSTGRES_TRIGGER,
  ],
  mysql: [
    `CREATE TABLE IF NOT EXISTS redlock_fence (
  resource varbinary(${LONGEST_NAME}) PRIMARY KEY, token bigint NOT NULL, fences bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ],
  sqlite: ['CREATE TABLE IF NOT EXISTS redlock_fence (resource text PRIMARY KEY, token integer NOT NULL)'],
};

/**
 * The statements that create the table of {@link fence}, each to be sent alone, and on PostgreSQL the function for triggers.
 * They may run more than once. The same statements are in `dist/sql/<dialect>.sql` of the package.
 *
 * @param dialect the database
 * @throws {RedlockConfigError} if there is no such dialect
 */
export function fenceMigration(dialect: FenceDialect): readonly string[] {
  if (Object.hasOwn(MIGRATIONS, dialect)) return MIGRATIONS[dialect];
  throw new RedlockConfigError('dialect', dialect, "must be 'postgres', 'mysql' or 'sqlite'");
}
