// Runs `npm run torture` and `npm run soak`, also on a fresh clone: compiles them and runs them on the library as it is built.
// Imports only Node's own modules and these scripts until everything else is installed.
import { mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { ensureRedisServer } from '../../scripts/redis-servers.mjs';
import { root } from '../../scripts/run.mjs';

let compiled;
let leaving;
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  // Servers and workers have guards that end them when this process has ended.
  process.on(signal, () => void leave().finally(() => process.exit(code)));
}

try {
  process.chdir(root);
  await ensureDependencies();
  console.log(`Redis server: ${await ensureRedisServer()}`);
  await ensureBuild();
  if (process.argv.includes('--fenced')) await import('./fenced/command.mjs');
  else await runCompiled(process.argv.includes('--soak') ? 'soak' : 'torture');
} catch (error) {
  // The stack is of no use for an invalid option, but it is for any other error.
  const isAboutOption =
    error instanceof Error && (error.message.startsWith('--') || String(error.code).startsWith('ERR_PARSE'));
  if (!leaving) console.error(isAboutOption ? error.message : error);
  process.exitCode = 1;
} finally {
  await leave();
}

async function runCompiled(name) {
  const { compileLibrary } = await compilerOfTests();
  compiled = await compileLibrary();
  // The temporary files of servers and workers are removed with this folder, however the run ends. The user of a database
  // could not enter it.
  if (name === 'torture') process.env.TMPDIR = compiled.folder;
  await import(pathToFileURL(join(compiled.folder, 'test', name, 'main.js')).href);
}

/** Loads test/support/compiled.ts, which compiles the rest. */
async function compilerOfTests() {
  const { transform } = await import('@swc/core');
  const source = await readFile(join(root, 'test/support/compiled.ts'), 'utf8');
  const parser = { syntax: 'typescript' };
  const { code } = await transform(source, { configFile: false, swcrc: false, jsc: { target: 'es2022', parser } });
  const cache = join(root, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'compiler-'));
  try {
    await writeFile(join(folder, 'compiled.mjs'), code);
    return await import(pathToFileURL(join(folder, 'compiled.mjs')).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function leave() {
  leaving ??= compiled?.[Symbol.asyncDispose]() ?? Promise.resolve();
  return leaving;
}
