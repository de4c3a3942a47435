// Applications as `nest new` generates them.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { keep } from './cache.mjs';
import { npmInstall, outputOf } from './command.mjs';

/** Files and folders that a former run may have left or changed. */
const GENERATED = ['src', 'test', 'dist', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
const ANSWERS = ['--skip-install', '--skip-git', '--package-manager', 'npm'];

/** Runs `nest new` of a version of the Nest CLI, without installing anything into the application. */
export async function nestNew(version, app, env, ...flags) {
  const cli = await keep(`nest-cli-${version}`, async (draft) => {
    const manifest = { private: true, dependencies: { '@nestjs/cli': version } };
    await writeFile(join(draft, 'package.json'), JSON.stringify(manifest));
    await npmInstall(draft);
  });
  await mkdir(dirname(app), { recursive: true });
  for (const file of GENERATED) await rm(join(app, file), { recursive: true, force: true });
  const args = ['new', basename(app), ...ANSWERS, ...flags];
  await outputOf(join(cli, 'node_modules/.bin/nest'), args, { cwd: dirname(app), env });
}

/** Removes packages from the generated package.json that a part of the matrix does not need. */
export async function dropPackages(app, notNeeded) {
  const path = join(app, 'package.json');
  const manifest = JSON.parse(await readFile(path, 'utf8'));
  const wanted = Object.entries(manifest.devDependencies).filter(([name]) => !notNeeded.test(name));
  await writeFile(path, JSON.stringify({ ...manifest, devDependencies: Object.fromEntries(wanted) }));
}
