// Applications as `nest new` generates them, and their processes.
import { ok } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensurePackage, npmInstall, outputOf, OWN, pathWith, refresh } from './command.mjs';
import { SCAFFOLDS } from './corners.mjs';

/** Packages that neither build, test nor run the application. */
const NOT_NEEDED = /eslint|oxlint|prettier|globals|coverage|^@nestjs\/mau$|^ts-(?:loader|node)$|source-map/;
/** Files and folders that a former run may have left or changed. */
const GENERATED = [
  ...['src', 'test', 'dist', 'package.json', 'tsconfig.json', 'vitest.config.ts', 'docker-compose.redlock.yml'],
];
const ANSWERS = ['--skip-install', '--skip-git', '--package-manager', 'npm'];
/** Time limit for what an application has to do, in milliseconds. */
const PATIENCE = 90_000;

/** Generates an application and installs its packages, and these. Resolves with its folder. */
export async function generate(name, scaffold, node, packages) {
  const app = join(OWN, 'applications', name);
  const { cli, flags } = SCAFFOLDS[scaffold];
  const nest = join(await ensurePackage('@nestjs/cli', cli), '../../.bin/nest');
  await mkdir(dirname(app), { recursive: true });
  for (const file of GENERATED) await rm(join(app, file), { recursive: true, force: true });
  await outputOf(nest, ['new', basename(app), ...ANSWERS, ...flags], { cwd: dirname(app), env: pathWith(node) });

  // No other machine on the network needs to reach this application.
  await edit(join(app, 'src/main.ts'), (text) => withWords(text, { 'process.env.PORT ?? 3000': "0, '127.0.0.1'" }));
  const manifest = await edit(join(app, 'package.json'), (text) => {
    const { devDependencies, ...rest } = JSON.parse(text);
    const wanted = Object.entries(devDependencies).filter(([each]) => !NOT_NEEDED.test(each));
    return JSON.stringify({ ...rest, devDependencies: Object.fromEntries(wanted) });
  });
  await refresh(app, `${manifest} ${packages.join(' ')}`, () => npmInstall(app, ...packages));
  return app;
}

async function edit(path, change) {
  const text = change(await readFile(path, 'utf8'));
  await writeFile(path, text);
  return text;
}

/** The text with some words replaced, each of which must occur exactly once. */
export function withWords(text, words) {
  let changed = text;
  for (const [word, other] of Object.entries(words)) {
    const count = text.split(word).length - 1;
    if (count !== 1) throw new Error(`"${word}" is there ${count} times instead of once:\n${text}`);
    changed = changed.replace(word, () => other);
  }
  return changed;
}

/** Starts an application several times until `isDone` says so of the output of each process, and ends them. */
export async function watch(app, node, { times, env, isDone }) {
  const instances = Array.from({ length: times }, () => {
    const options = { cwd: app, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] };
    const child = spawn(node, ['dist/main.js'], options);
    const instance = { child, output: '', ended: new Promise((resolve) => child.once('close', resolve)) };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (instance.output += text));
    }
    return instance;
  });
  try {
    const deadline = Date.now() + PATIENCE;
    const outputs = () => instances.map(({ output }) => output);
    while (!isDone(outputs())) {
      const isRunning = instances.every(({ child }) => child.exitCode === null && child.signalCode === null);
      ok(isRunning, `the application has ended:\n${outputs().join('\n')}`);
      ok(Date.now() < deadline, `the application is not done in time:\n${outputs().join('\n')}`);
      await sleep(100);
    }
  } finally {
    for (const { child } of instances) child.kill();
    await Promise.all(instances.map(({ ended }) => ended));
  }
}
