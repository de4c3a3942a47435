// An application with the tarball, started by each version of Node, as ESM and as CommonJS.
import { deepEqual, equal, match, notEqual } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { outcomeOf, outputOf, pathWith } from './command.mjs';

const EXERCISED = ['locks', 'testing'];
const OPTIONAL = ['terminus', 'opentelemetry', 'schedule'];

/** The cells of one application and one version of Node. */
export function runTimeCells({ consumer, folder, node, version, masters }) {
  const { name, title, nest } = consumer;
  const bare = name === 'bare';
  const env = { MATRIX_MASTERS: masters.join(','), ...(bare && { MATRIX_BARE: 'yes' }) };
  const exercise = (format) =>
    shows(bare ? EXERCISED : [...EXERCISED, ...OPTIONAL], node, [`${format}/main.js`], {
      cwd: folder,
      env: { ...env, MATRIX_PREFIX: `${name}:${version}:${format}:` },
    });
  const surface = ['no deep imports', 'one copy', ...(bare ? ['missing peers are named'] : [])];
  const parts = {
    ESM: () => exercise('esm'),
    CommonJS: () => exercise('cjs'),
    exports: () => shows(surface, node, ['surface.mjs'], { cwd: folder, env }),
    CLI: () => commandLine(node, folder, masters),
    'two copies': () => twoCopies({ nest, folder, node }),
  };
  return ['ESM', 'CommonJS', ...consumer.shows].map((part) => ({
    ...{ table: 'run time', row: title, column: version, part },
    run: parts[part],
  }));
}

/** Starts a program that prints what it has shown, once it has shown everything. */
async function shows(expected, node, args, options) {
  const output = await outputOf(node, args, options);
  const last = output.trim().split('\n').at(-1);
  equal(last, JSON.stringify(expected), `ended before it had shown everything:\n${output}`);
}

/** Runs the program as a shell does: the first Node on the path finds and runs it. */
async function commandLine(node, folder, masters) {
  const bin = join(folder, 'node_modules/.bin/nestjs-redlock');
  const env = { ...pathWith(node), REDLOCK_MASTERS: masters.join(',') };
  const { version } = JSON.parse(await readFile(join(folder, 'node_modules/nestjs-redlock/package.json'), 'utf8'));
  equal((await outputOf(bin, ['--version'], { env })).trim(), version);
  const { healthy, voters } = JSON.parse(await outputOf(bin, ['doctor', '--json', '--no-restart-guard'], { env }));
  deepEqual([healthy, voters.length], [true, masters.length]);
}

/** Node must not load ESM by `require`, so that both copies are loaded. */
async function twoCopies({ nest, folder, node }) {
  const args = ['--no-experimental-require-module', 'copies.mjs'];
  if (nest < 12) return shows(['two copies work together'], node, args, { cwd: folder });
  const { code, stderr } = await outcomeOf(node, args, { cwd: folder });
  notEqual(code, 0);
  match(stderr, /ERR_REQUIRE_ESM/);
  match(stderr, /@nestjs\/(common|core)/);
  return { notApplicable: 'two copies: CommonJS without `require` of ESM cannot load Nest 12' };
}
