import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun, root } from './run.mjs';

const INPUTS = ['package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Whether dist is newer than all of its sources. */
export async function isBuilt() {
  const built = await modified('dist/cjs/package.json').catch(() => 0); // the file that the build writes last
  // Includes folders, because a removed file leaves no modification time of its own.
  const sources = ['lib', ...(await readdir(join(root, 'lib'), { recursive: true })).map((file) => join('lib', file))];
  const changed = await Promise.all([...INPUTS, ...sources].map(modified));
  return changed.every((time) => time < built);
}

/** Builds the library unless the build is up to date. Samples, the demo and the tests of the command line use dist. */
export async function ensureBuild() {
  if (await isBuilt()) return;
  console.log('The library is not built, or older than its sources: npm run build -- --no-check');
  await mustRun('npm', ['run', '--silent', 'build', '--', '--no-check']);
}

async function modified(file) {
  return (await stat(join(root, file))).mtimeMs;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensureBuild();
