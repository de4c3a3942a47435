// PostgreSQL for the sample that guards a row: only its programs, the sample starts a server of its own. Not needed:
// the sample uses an SQLite file where there is none.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureProgram } from './ensure-program.mjs';

/** Where Debian keeps the versions that it has, and where others keep the only one. */
const VERSIONS = '/usr/lib/postgresql';
const OTHER_FOLDERS = ['/usr/local/pgsql/bin', '/opt/homebrew/opt/postgresql/bin', '/usr/local/opt/postgresql/bin'];
const PACKAGES = {
  'apt-get': ['postgresql'],
  apk: ['postgresql'],
  dnf: ['postgresql-server'],
  brew: ['postgresql'],
};

/**
 * Folder of the server's programs, after an installation if that needs no question. Where there is none, says what to
 * type and gives `undefined`.
 */
export async function ensurePostgres(log = console.log) {
  try {
    return await ensureProgram('PostgreSQL', findPostgres, PACKAGES, 'https://www.postgresql.org/download');
  } catch (error) {
    log(error.message);
    return undefined;
  }
}

/** Folder of the server's programs, the newest version first; `undefined` if there are none. */
export function findPostgres() {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter(Boolean),
    ...versions.map((version) => join(VERSIONS, version, 'bin')),
    ...OTHER_FOLDERS,
  ];
  return folders.find((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')));
}
