// Finds programs that npm does not install on this machine, or installs them by its package manager if that needs no
// password.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
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
