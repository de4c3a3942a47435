import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun, root } from './run.mjs';

/** Installs missing packages of a lockfile: those of the project with its samples, or of another folder. */
export async function ensureDependencies(folder = '.') {
  const cwd = join(root, folder);
  if (await matchesLockfile(cwd)) return;
  console.log(`Dependencies of ${folder === '.' ? 'the project' : folder} are not those of its lockfile: npm ci`);
  // No dependency needs its install script; one would even compile a file watcher that jest does not use here.
  await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd });
}

/** Compares the lockfile with npm's own record of the contents of node_modules. */
async function matchesLockfile(folder) {
  const wanted = await packages(join(folder, 'package-lock.json'));
  const installed = await packages(join(folder, 'node_modules/.package-lock.json')).catch(() => undefined);
  if (!installed) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    const there = installed[path];
    // The root itself is not in the record, and optional packages of other platforms never are.
    if (path === '' || (!there && entry.optional)) return true;
    return there !== undefined && there.version === entry.version && there.integrity === entry.integrity;
  });
}

async function packages(lockfile) {
  return JSON.parse(await readFile(lockfile, 'utf8')).packages;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensureDependencies();
