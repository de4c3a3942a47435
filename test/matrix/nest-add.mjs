// `nest add nestjs-redlock` in the application that `nest new` makes, with nothing else changed in it.
import { deepEqual, equal, match } from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { generate, watch } from './application.mjs';
import { outcomeOf, outputOf, pathWith } from './command.mjs';
import { NEWCOMERS_NODE } from './corners.mjs';

/** The newest command line for each major version of Nest, and the Node version that it runs on. */
const APPLICATIONS = [
  { row: 'Nest 11, CommonJS, jest', scaffold: 'nest11', version: '20.19.0' },
  { row: 'Nest 12, ESM, vitest', scaffold: 'nest12', version: NEWCOMERS_NODE },
];

/** One cell for each application. */
export function nestAddCells({ tarball, nodes, masters }) {
  return APPLICATIONS.map(({ row, scaffold, version }) => ({
    ...{ table: 'nest add', row: `${row}, Node ${version}`, column: 'result', part: 'application' },
    run: () => tryApplication({ scaffold, tarball, node: nodes[version], masters }),
  }));
}

async function tryApplication({ scaffold, tarball, node, masters }) {
  const app = await generate(`nest-add-${scaffold}`, scaffold, node, [tarball]);
  const shell = { cwd: app, env: pathWith(node) };
  // The library is not in a registry, so `nest add` cannot install it.
  const nestAdd = ['nest', 'add', 'nestjs-redlock', '--skip-install'];
  await outputOf('npx', nestAdd, shell);
  const files = await contentOf(app);
  match(files['src/app.module.ts'], /RedlockModule\.forRoot\(/);
  match(files['package.json'], /"ioredis":/);
  match(await outputOf('npx', nestAdd, shell), /Nothing to be done/);
  deepEqual(await contentOf(app), files);

  await outputOf('npm', ['run', 'build'], shell);
  const { code, stdout, stderr } = await outcomeOf('npm', ['test'], shell);
  equal(code, 0, stdout + stderr);
  match(stdout + stderr, /redlock\.spec\.ts/);

  // It waits for a majority of the masters.
  const env = { REDLOCK_MASTERS: masters.join(','), NO_COLOR: '1' };
  const isDone = ([output]) => {
    if (!output.includes('successfully started')) return false;
    for (const url of masters) match(output, new RegExp(new URL(url).host));
    return true;
  };
  await watch(app, node, { times: 1, env, isDone });
}

/** The files of the application, by their paths. */
async function contentOf(app) {
  const entries = await readdir(app, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const own = paths.map((path) => relative(app, path)).filter((path) => !path.startsWith('node_modules'));
  return Object.fromEntries(
    await Promise.all(own.map(async (path) => [path, await readFile(join(app, path), 'utf8')])),
  );
}
