// PostgreSQL for the sample that guards a row: only its programs, the sample starts a server of its own.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensureProgram, onPath } from './ensure-program.mjs';

/** Where Debian keeps the versions that it has. */
const VERSIONS = '/usr/lib/postgresql';
const PACKAGES = {
  'apt-get': ['postgresql'],
  apk: ['postgresql'],
  dnf: ['postgresql-server'],
  brew: ['postgresql'],
};

/** Path of the server's program. Rejects with the line to type where it cannot be installed without a question. */
export function ensurePostgres() {
  return ensureProgram('PostgreSQL', findPostgres, PACKAGES, 'https://www.postgresql.org/download');
}

function findPostgres() {
  if (process.env.DATABASE_URL) return 'that of DATABASE_URL';
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
  const paths = versions.map((version) => join(VERSIONS, version, 'bin/postgres'));
  return onPath('postgres') ?? paths.find(existsSync);
}
