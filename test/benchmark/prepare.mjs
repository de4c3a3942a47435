import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { ensureRedisServer } from '../../scripts/redis-servers.mjs';
import { mustRun } from '../../scripts/run.mjs';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** Prepares everything that a benchmark needs: the peers, the packed library, and a Redis server. */
export async function prepare() {
  if (!(await hasPeers())) {
    console.log('The peers to compare with are not installed: npm ci in test/benchmark');
    await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
  }
  await ensureBuild();
  await ensureRedisServer();
}

async function hasPeers() {
  const wanted = await packages('package-lock.json');
  const installed = await packages('node_modules/.package-lock.json').catch(() => ({}));
  return Object.keys(wanted).every((path) => path === '' || installed[path]?.version === wanted[path].version);
}

async function packages(file) {
  return JSON.parse(await readFile(`${folder}/${file}`, 'utf8')).packages;
}
