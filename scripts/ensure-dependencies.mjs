import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun, root } from './run.mjs';

/** Installs missing packages of the project, of its samples, and of Nest 11 for the tests. */
export async function ensureDependencies() {
  if (await matchesLockfile()) return;
  console.log('Dependencies of the project are not those of its lockfile: npm ci');
  // No dependency needs its install script; one would even compile a file watcher that jest does not use here.
  await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Compares the lockfile with npm's own record of the contents of node_modules. */
async function matchesLockfile() {
  const wanted = await packages('package-lock.json');
  const installed = await packages('node_modules/.package-lock.json').catch(() => undefined);
  if (!installed) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    const there = installed[path];
    // The root itself is not in the record, and optional packages of other platforms never are.
    if (path === '' || (!there && entry.optional)) return true;
    return there !== undefined && there.version === entry.version && there.integrity === entry.integrity;
  });
}

async function packages(lockfile) {
  return JSON.parse(await readFile(join(root, lockfile), 'utf8')).packages;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensureDependencies();
