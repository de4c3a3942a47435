// `nest add nestjs-redlock` in the application that `nest new` makes, with nothing else changed in it.
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { npmInstall, outcomeOf, outputOf, OWN, refresh } from './command.mjs';
import { NEWCOMERS_NODE } from './corners.mjs';
import { Instance } from './instance.mjs';
import { withWords } from './report.mjs';
import { dropPackages, nestNew } from './runners.mjs';

/** The newest command line for each major version of Nest, and the Node version that it runs on. */
const APPLICATIONS = [
  { row: 'Nest 11, CommonJS, jest', name: 'nest11', cli: '11.0.24', node: '20.19.0', flags: [] },
  { row: 'Nest 12, ESM, vitest', name: 'nest12', cli: '12.0.8', node: NEWCOMERS_NODE, flags: ['--no-observe'] },
];
/** Packages that neither build, test nor run the application. */
const NOT_NEEDED = /eslint|oxlint|prettier|globals|coverage|^@nestjs\/mau$|^ts-(?:loader|node)$|source-map/;
/** Files of a former run that `nest new` does not replace. */
const WRITTEN = ['docker-compose.redlock.yml'];
/** Time limit for the start of the application, in milliseconds. */
const PATIENCE = 60_000;

/** One cell for each application. */
export function nestAddCells({ tarball, nodes, masters }) {
  return APPLICATIONS.map((application) => ({
    ...{
      table: 'nest add',
      row: `${application.row}, Node ${application.node}`,
      column: 'result',
      part: 'application',
    },
    run: () => tryApplication(application, { tarball, node: nodes[application.node], masters }),
  }));
}

async function tryApplication({ name, cli, flags }, { tarball, node, masters }) {
  const env = { PATH: [dirname(node), process.env.PATH].join(delimiter) };
  const app = join(OWN, 'nest-add', name);
  for (const file of WRITTEN) await rm(join(app, file), { force: true });
  await nestNew(cli, app, env, ...flags);
  await dropPackages(app, NOT_NEEDED);
  // No other machine on the network needs to reach this application.
  const main = await readFile(join(app, 'src/main.ts'), 'utf8');
  await writeFile(join(app, 'src/main.ts'), withWords(main, { 'process.env.PORT ?? 3000': "0, '127.0.0.1'" }));
  const manifest = await readFile(join(app, 'package.json'), 'utf8');
  await refresh(app, `${manifest} ${tarball}`, () => npmInstall(app, tarball));

  const shell = { cwd: app, env };
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
  await start(app, node, masters);
}

/** Starts the application, which waits for a majority of the masters. */
async function start(app, node, masters) {
  const env = { REDLOCK_MASTERS: masters.join(','), NO_COLOR: '1' };
  const instance = new Instance(node, ['dist/main.js'], app, env);
  try {
    const deadline = Date.now() + PATIENCE;
    while (!instance.output.includes('successfully started')) {
      ok(instance.isRunning, `the application has ended:\n${instance.output}`);
      ok(Date.now() < deadline, `the application has not started in time:\n${instance.output}`);
      await sleep(100);
    }
    for (const url of masters) match(instance.output, new RegExp(new URL(url).host));
  } finally {
    await instance.end();
  }
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
