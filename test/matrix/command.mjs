// Commands, and what a run keeps for the next one. The cache is outside the project: an application below it would find the
// project's own packages, and a missing package would never be noticed.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { root } from '../../scripts/run.mjs';

/** Time limit of one command, in milliseconds: none of them should take a tenth of it. */
const PATIENCE = 180_000;

/** Runs a command without stdin. Resolves with its exit code and its whole output. */
export function outcomeOf(command, args, { cwd, env } = {}) {
  const options = {
    cwd,
    env: { ...process.env, ...env },
    timeout: PATIENCE,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 26,
  };
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      if (error && child.pid === undefined) reject(error);
      else resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
    });
    child.stdin?.end();
  });
}

/** Resolves with what a command prints. Any exit code other than 0 is an error with the whole output. */
export async function outputOf(command, args, options) {
  const { code, stdout, stderr } = await outcomeOf(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${[command, ...args].join(' ')}: ${code}\n${stdout}${stderr}`.trimEnd());
}

/** The environment of a shell in which this Node is the first on the path. */
export function pathWith(node) {
  return { PATH: [dirname(node), process.env.PATH].join(delimiter), CI: 'true' };
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

/** Resolves with the folder of a version of a package. It never changes once it is complete, and all clones share it. */
export async function ensurePackage(name, version) {
  const folder = join(SHARED, `${name.replace(/\W+/g, '-')}-${version}`);
  if (!(await readFile(join(folder, '.complete')).catch(() => undefined))) {
    await rm(folder, { recursive: true, force: true });
    const draft = await mkdtemp(`${folder}-`);
    await writeFile(join(draft, 'package.json'), JSON.stringify({ private: true, dependencies: { [name]: version } }));
    await npmInstall(draft);
    await writeFile(join(draft, '.complete'), 'yes');
    await rename(draft, folder);
  }
  return join(folder, 'node_modules', name);
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
  return join(await ensurePackage(`node-${process.platform}-${process.arch}`, version), 'bin/node');
}

/** Resolves with the path of a version of the TypeScript compiler. */
export async function ensureTypeScript(version) {
  return join(await ensurePackage('typescript', version), 'bin/tsc');
}

/** One more than there are processors, but at most four: one action usually waits for the network, the disk or a lock. */
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
