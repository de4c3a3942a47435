// The guard: each row remembers the largest fencing token that it has seen. PostgreSQL and SQLite alike.

export const CREATE = `
  CREATE TABLE IF NOT EXISTS stock (
    item  text   PRIMARY KEY,
    count bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0  -- a fencing token is at most 2^53 - 1
  )`;

/**
 * Reads the row and closes it to everybody with a smaller token.
 *
 * Reading must leave the token there. Otherwise a late write could come between the successor's read and its write:
 * it would be accepted, and then overwritten by somebody who has not seen it.
 */
export const CLAIM = `
  UPDATE stock SET fence = $2
  WHERE item = $1 AND fence < $2
  RETURNING count`;

/** Writes what follows from a row that was claimed. No row is returned if somebody has claimed it since. */
export const WRITE = `
  UPDATE stock SET count = $3
  WHERE item = $1 AND fence = $2
  RETURNING count`;

/** Writes a row whatever was there, with a single statement: a conditional upsert. */
export const PUT = `
  INSERT INTO stock (item, fence, count) VALUES ($1, $2, $3)
  ON CONFLICT (item) DO UPDATE SET fence = EXCLUDED.fence, count = EXCLUDED.count
  WHERE stock.fence < EXCLUDED.fence
  RETURNING count`;

export const READ = `SELECT count FROM stock WHERE item = $1`;

/** What is written without the guard: whoever comes last wins. */
export const WRITE_UNGUARDED = `UPDATE stock SET count = $2 WHERE item = $1 RETURNING count`;
