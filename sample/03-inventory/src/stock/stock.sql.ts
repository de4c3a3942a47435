// The statements suit PostgreSQL and SQLite.

export const CREATE = `CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count bigint NOT NULL)`;

export const READ = `SELECT count FROM stock WHERE item = $1`;

export const WRITE = `
  INSERT INTO stock (item, count) VALUES ($1, $2)
  ON CONFLICT (item) DO UPDATE SET count = EXCLUDED.count`;
