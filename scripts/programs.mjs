// Finds programs that npm does not install on this machine, or installs them by its package manager if that needs no
// password.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const MANAGERS = {
  'apt-get': {
    prepare: ['apt-get', 'update', '-q'],
    install: ['apt-get', 'install', '-q', '-y', '--no-install-recommends'],
  },
  apk: { install: ['apk', 'add', '--no-cache'] },
  dnf: { install: ['dnf', 'install', '-y'] },
  brew: { install: ['brew', 'install'], unprivileged: true },
};

/**
 * The result of `find`, after an installation if necessary. Otherwise rejects with the command to run.
 *
 * @param packages names of the packages for each package manager
 * @param help URL of the instructions for a machine without a known package manager
 */
export async function ensureProgram(name, find, packages, help) {
  const found = find();
  if (found) return found;

  const missing = `No ${name} on this machine. Install it, then run this again:`;
  const tool = Object.keys(MANAGERS).find(onPath);
  if (!tool) throw new Error(`${missing} see ${help}`);

  const { prepare, install, unprivileged } = MANAGERS[tool];
  const steps = [...(prepare ? [prepare] : []), [...install, ...packages[tool]]];
  const byHand = `${missing} ${unprivileged ? '' : 'sudo '}${install.filter((word) => word !== '-q').join(' ')} ${packages[tool].join(' ')}`;
  const prefix = await privilege(unprivileged);
  if (!prefix) throw new Error(byHand);
  for (const step of steps) {
    const command = [...prefix, ...step];
    console.log(`No ${name} on this machine: ${command.join(' ')}`);
    if ((await exitCode(command, 'inherit')) !== 0) throw new Error(byHand);
  }
  const installed = find();
  if (!installed) throw new Error(byHand);
  return installed;
}

/** Path of a program; `undefined` if PATH does not contain it. */
export function onPath(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter(Boolean)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** The prefix of an installer's command; `undefined` if the command would ask for a password. */
async function privilege(unprivileged) {
  if (unprivileged || process.getuid?.() === 0) return [];
  const passwordless = onPath('sudo') !== undefined && (await exitCode(['sudo', '-n', 'true'], 'ignore')) === 0;
  return passwordless ? ['sudo', '-n'] : undefined;
}

function exitCode([command, ...args], output) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', HOMEBREW_NO_AUTO_UPDATE: '1' };
  return new Promise((resolve) => {
    const child = spawn(command, args, { env, stdio: ['ignore', output, output] });
    child.once('error', () => resolve(127));
    child.once('close', resolve);
  });
}

/** Names of packages by package manager: the usual ones, and those of the managers that have others. */
function packages(usual, others = {}) {
  return Object.fromEntries(Object.keys(MANAGERS).map((manager) => [manager, (others[manager] ?? usual).split(' ')]));
}

/** Like {@link ensureProgram}, but logs the command to run and returns `undefined` if it may not be installed. */
function optional(...program) {
  return (log = console.log) => ensureProgram(...program).catch((error) => void log(error.message));
}

/** Path of the browser to start: `CHROMIUM` if set, else a browser in PATH. playwright-core contains none. */
const findChromium = () =>
  process.env.CHROMIUM ||
  ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(onPath).find(Boolean);

export const ensureChromium = () =>
  ensureProgram(
    'Chromium',
    findChromium,
    packages('chromium', { brew: '--cask chromium' }),
    'https://www.chromium.org/getting-involved/download-chromium',
  );

/** Where Debian installs the versions of PostgreSQL, and where other systems install the only one. */
const POSTGRES_VERSIONS = '/usr/lib/postgresql';
const POSTGRES = ['/usr/local/pgsql/bin', '/opt/homebrew/opt/postgresql/bin', '/usr/local/opt/postgresql/bin'];

/** Folder of the newest programs of PostgreSQL; `undefined` if there are none, or with `POSTGRES=none`. */
export function findPostgres() {
  if (process.env.POSTGRES === 'none') return undefined;
  const versions = existsSync(POSTGRES_VERSIONS) ? readdirSync(POSTGRES_VERSIONS).sort((a, b) => b - a) : [];
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter(Boolean),
    ...versions.map((version) => join(POSTGRES_VERSIONS, version, 'bin')),
    ...POSTGRES,
  ];
  return folders.find((folder) => ['postgres', 'initdb'].every((name) => existsSync(join(folder, name))));
}

export const ensurePostgres = optional(
  'PostgreSQL',
  findPostgres,
  packages('postgresql', { dnf: 'postgresql-server' }),
  'https://www.postgresql.org/download',
);

/** Folders of servers that are not on the PATH of every user. */
const MARIADB = ['/usr/sbin', '/usr/libexec', '/usr/local/sbin', '/opt/homebrew/bin', '/usr/local/bin'];

/** Paths of the programs of MariaDB; `undefined` if there are none, or with `MARIADB=none`. */
export function findMariadb() {
  if (process.env.MARIADB === 'none') return undefined;
  const find = (name) => onPath(name) ?? MARIADB.map((folder) => join(folder, name)).find((path) => existsSync(path));
  const [server, install] = [find('mariadbd'), find('mariadb-install-db')];
  return server && install ? { server, install } : undefined;
}

export const ensureMariadb = optional(
  'MariaDB',
  findMariadb,
  packages('mariadb', { 'apt-get': 'mariadb-server', dnf: 'mariadb-server' }),
  'https://mariadb.org/download',
);

/** Paths of the server and of its tool; `undefined` unless PATH contains both. */
export function findPrometheus() {
  const [prometheus, promtool] = ['prometheus', 'promtool'].map(onPath);
  return prometheus && promtool ? { prometheus, promtool } : undefined;
}

// The packages of Debian and Alpine contain promtool as well.
export const ensurePrometheus = optional(
  'Prometheus',
  findPrometheus,
  packages('prometheus', { dnf: 'golang-github-prometheus' }),
  'https://prometheus.io/download',
);
