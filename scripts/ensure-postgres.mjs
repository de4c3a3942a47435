// Finds PostgreSQL for the tests of fences. Only its programs are needed: the tests start servers of their own. It is optional:
// without it, fences are tested on SQLite.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureProgram } from './ensure-program.mjs';

/** Where Debian installs its versions, and where other systems install the only one. */
const VERSIONS = '/usr/lib/postgresql';
const OTHER_FOLDERS = ['/usr/local/pgsql/bin', '/opt/homebrew/opt/postgresql/bin', '/usr/local/opt/postgresql/bin'];
const PACKAGES = {
  'apt-get': ['postgresql'],
  apk: ['postgresql'],
  dnf: ['postgresql-server'],
  brew: ['postgresql'],
};

/**
 * Folder of the server's programs. Installs them if they are missing and no password is needed. Otherwise logs the
 * command to run and returns `undefined`.
 */
export async function ensurePostgres(log = console.log) {
  try {
    return await ensureProgram('PostgreSQL', findPostgres, PACKAGES, 'https://www.postgresql.org/download');
  } catch (error) {
    log(error.message);
    return undefined;
  }
}

/** Folder of the newest version of the server's programs; `undefined` if there are none, or with `POSTGRES=none`. */
export function findPostgres() {
  if (process.env.POSTGRES === 'none') return undefined;
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter(Boolean),
    ...versions.map((version) => join(VERSIONS, version, 'bin')),
    ...OTHER_FOLDERS,
  ];
  return folders.find((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')));
}
