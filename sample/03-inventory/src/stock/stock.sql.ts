// The guard: each row stores the largest fencing token that it has seen. The statements suit PostgreSQL and SQLite.

export const CREATE = `
  CREATE TABLE IF NOT EXISTS stock (
    item  text   PRIMARY KEY,
    count bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0  -- a fencing token is at most 2^53 - 1
  )`;

/**
 * Reads the row and closes it to all requests with a smaller token.
 *
 * The read must store the token. Otherwise a late write could arrive between the successor's read and its write. The
 * row would accept the late write, and then the successor would overwrite it without having seen it.
 */
export const CLAIM = `
  UPDATE stock SET fence = $2
  WHERE item = $1 AND fence < $2
  RETURNING count`;

/** Writes the result of a claimed row. Returns no row if another request has claimed it since. */
export const WRITE = `
  UPDATE stock SET count = $3
  WHERE item = $1 AND fence = $2
  RETURNING count`;

/** Writes a row without reading it, with a single statement: a conditional upsert. */
export const PUT = `
  INSERT INTO stock (item, fence, count) VALUES ($1, $2, $3)
  ON CONFLICT (item) DO UPDATE SET fence = EXCLUDED.fence, count = EXCLUDED.count
  WHERE stock.fence < EXCLUDED.fence
  RETURNING count`;

export const READ = `SELECT count FROM stock WHERE item = $1`;

/** Writes without the guard: the last write wins. */
export const WRITE_UNGUARDED = `UPDATE stock SET count = $2 WHERE item = $1 RETURNING count`;
