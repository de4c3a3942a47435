import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun, root } from './run.mjs';

const INPUTS = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'tsconfig.build.cjs.json'];

/** Whether dist is newer than everything it is made of. */
export async function isBuilt() {
  const built = await modified('dist/cjs/package.json').catch(() => 0); // what the build writes last
  // Folders too: a file that was removed leaves no time of its own.
  const sources = ['lib', ...(await readdir(join(root, 'lib'), { recursive: true })).map((file) => join('lib', file))];
  const changed = await Promise.all([...INPUTS, ...sources].map(modified));
  return changed.every((time) => time < built);
}

/** Builds the library unless it is built. Samples, the demo and the tests of the command line run on dist. */
export async function ensureBuild() {
  if (await isBuilt()) return;
  console.log('The library is not built, or older than its sources: npm run build');
  await mustRun('npm', ['run', '--silent', 'build']);
}

async function modified(file) {
  return (await stat(join(root, file))).mtimeMs;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await ensureBuild();
