// Finds MariaDB for the tests of fenced writes. Only its programs are needed: the tests start a server of their own.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensureProgram, onPath } from './ensure-program.mjs';

/** Debian's folder of servers is not on the PATH of every user. */
const FOLDERS = ['/usr/sbin', '/usr/libexec', '/usr/local/sbin', '/opt/homebrew/bin', '/usr/local/bin'];
const PACKAGES = {
  'apt-get': ['mariadb-server'],
  apk: ['mariadb'],
  dnf: ['mariadb-server'],
  brew: ['mariadb'],
};

/**
 * Paths of the programs. Installs them if they are missing and no password is needed. Otherwise logs the command to run and
 * returns `undefined`.
 */
export async function ensureMariadb(log = console.log) {
  try {
    return await ensureProgram('MariaDB', findMariadb, PACKAGES, 'https://mariadb.org/download');
  } catch (error) {
    log(error.message);
    return undefined;
  }
}

/** Paths of the programs; `undefined` if there are none, or with `MARIADB=none`. */
export function findMariadb() {
  if (process.env.MARIADB === 'none') return undefined;
  const find = (name) => onPath(name) ?? FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));
  const [server, install] = [find('mariadbd'), find('mariadb-install-db')];
  return server && install ? { server, install } : undefined;
}
