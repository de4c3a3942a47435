// Installs the drivers and object mappers with which test/sql runs the recipes of docs/fenced-writes.md.
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mustRun, root, run } from '../../scripts/run.mjs';

const folder = join(root, 'test/sql');
const recordOf = (path) => readFile(join(folder, path), 'utf8').catch(() => undefined);

/** Resolves with why a recipe cannot run here, by its name. */
export async function ensureSqlDrivers() {
  const wanted = JSON.parse(await recordOf('package-lock.json')).packages;
  const installed = JSON.parse((await recordOf('node_modules/.package-lock.json')) ?? '{}').packages ?? {};
  const isThere = ([path, { version, optional }]) => path === '' || optional || installed[path]?.version === version;
  if (!Object.entries(wanted).every(isThere)) {
    console.log('Drivers of the recipes for fenced writes: npm ci');
    await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
  }
  // Its program for migrations would be downloaded, and the client needs none.
  const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' };
  await mustRun('npx', ['--no-install', 'prisma', 'generate', '--no-hints', '--schema', 'recipes/schema.prisma'], {
    cwd: folder,
    env,
  });
  return hasBinary() ? {} : await built();
}

/** The only driver with a binary of its own, which is downloaded, or else compiled without optimization: a third of the time. */
async function built() {
  const cwd = join(folder, 'node_modules/better-sqlite3');
  console.log('Binary of better-sqlite3: prebuild-install, or npm run build-debug');
  const code = await run('npx', ['--no-install', 'prebuild-install'], { cwd });
  if (code !== 0) await run('npm', ['run', '--silent', 'build-debug'], { cwd });
  return hasBinary() ? {} : { 'better-sqlite3': 'its binary can neither be downloaded nor compiled here' };
}

function hasBinary() {
  const open = `import('better-sqlite3').then(({ default: Database }) => new Database(':memory:').close())`;
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', open], { cwd: folder, stdio: 'ignore' });
  return status === 0;
}
