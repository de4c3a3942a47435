// Keeps what a run installs for the next run. The cache is outside the project: an application below it would find the
// project's own packages, and a missing package would never be noticed.
// Other versions of Node and of TypeScript, from the npm registry.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../../scripts/run.mjs';

/** Time limit of one command, in milliseconds: none of them should take a tenth of it. */
const PATIENCE = 180_000;

/** Runs a command without stdin. Resolves with its exit code and its whole output. */
export function outcomeOf(command, args, { cwd, env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8');
      child[stream].on('data', (text) => (output[stream] += text));
    }
    const deadline = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
    child.once('error', (error) => {
      clearTimeout(deadline);
      reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(deadline);
      resolve({ code: code ?? signal, ...output });
    });
  });
}

/** Resolves with what a command prints. Any exit code other than 0 is an error with the whole output. */
export async function outputOf(command, args, options) {
  const { code, stdout, stderr } = await outcomeOf(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${[command, ...args].join(' ')}: ${code}\n${stdout}${stderr}`.trimEnd());
}

const QUIET = ['--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];

/** Runs `npm install` in a folder with a package.json. No package that is needed has an install script. */
export function npmInstall(folder, ...args) {
  return outputOf('npm', ['install', '--ignore-scripts', '--no-package-lock', ...QUIET, ...args], { cwd: folder });
}

const USER = process.getuid?.() ?? 0;
const SHARED = join(tmpdir(), `nestjs-redlock-matrix-${USER}`);
mkdirSync(SHARED, { recursive: true, mode: 0o700 });
// Programs are started from here, so no other user may have put them there.
if (statSync(SHARED).uid !== USER) throw new Error(`${SHARED} belongs to another user`);

/** The cache of this clone alone. */
export const OWN = join(SHARED, createHash('sha256').update(root).digest('hex').slice(0, 12));

/** Fills a folder that never changes once it is complete: its name contains the version. All clones share it. */
export async function keep(name, fill) {
  const folder = join(SHARED, name);
  if (await readFile(join(folder, '.complete')).catch(() => undefined)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  const draft = await mkdtemp(`${folder}-`);
  await fill(draft);
  await writeFile(join(draft, '.complete'), 'yes');
  await rename(draft, folder);
  return folder;
}

/** Brings a folder up to date, unless that has been done for the same key. */
export async function refresh(folder, key, update) {
  const stamp = join(folder, '.up-to-date');
  await mkdir(folder, { recursive: true });
  if ((await readFile(stamp, 'utf8').catch(() => undefined)) === key) return;
  await rm(stamp, { force: true });
  await update();
  await writeFile(stamp, key);
}

/** Resolves with the path of a version of Node. */
export async function ensureNode(version) {
  if (process.versions.node === version) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = await keep(`node-${version}`, async (draft) => {
    const packed = (
      await outputOf('npm', ['pack', `${name}@${version}`, '--silent', '--prefer-offline'], { cwd: draft })
    ).trim();
    await outputOf('tar', ['xzf', packed, 'package/bin/node'], { cwd: draft });
    await rm(join(draft, packed));
  });
  return join(folder, 'package/bin/node');
}

/** Resolves with the path of a version of the TypeScript compiler. */
export async function ensureTypeScript(version) {
  const folder = await keep(`typescript-${version}`, async (draft) => {
    await writeFile(
      join(draft, 'package.json'),
      JSON.stringify({ private: true, dependencies: { typescript: version } }),
    );
    await npmInstall(draft);
  });
  return join(folder, 'node_modules/typescript/bin/tsc');
}

/**
 * One more than there are processors, but at most four: one action usually waits for the network, the disk or a lock.
 */
const AT_ONCE = Math.min(4, availableParallelism() + 1);

/** Runs actions, a few at a time. Resolves with their results in order. */
export async function inParallel(actions) {
  const results = [];
  const queue = actions.entries();
  const worker = async () => {
    for (const [index, action] of queue) results[index] = await action();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
