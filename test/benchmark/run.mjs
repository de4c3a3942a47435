// npm run bench -- [<suite>... | all] [--quick] [--check] [--masters 1,3,5] [--only contender,...] [--json file]
//                         [--markdown test/benchmark/results.md] [--before folder]
//
// --before compares with the build of another checkout, which has to be built there.
// Contenders alternate round by round in one run on one machine. Compare ratios, not figures of different runs.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare } from './prepare.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { writePart } from '../../scripts/page.mjs';
import { findRedisServer, versionOfServer } from '../../scripts/redis-servers.mjs';

const { values: options, positionals } = optionsOf({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
    before: { type: 'string' },
    masters: { type: 'string' },
    only: { type: 'string' },
  },
});

/** What compares with other libraries. */
const COMPARISONS = ['cost', 'latency', 'waiting'];
const ALL = 'all';

const folder = new URL('suites/', import.meta.url);
const known = (await readdir(folder)).filter((file) => file.endsWith('.mjs')).map((file) => file.slice(0, -4));
const unknown = positionals.filter((name) => !known.includes(name) && name !== ALL);
if (unknown.length > 0) {
  console.error(`There is no suite ${unknown.join(', ')}; there are: ${known.join(', ')}, and ${ALL} of them`);
  process.exit(2);
}

const masters = options.masters?.split(',').map(Number);
if (masters?.some((count) => !Number.isSafeInteger(count) || count < 1)) {
  console.error(`--masters must be whole numbers above zero, separated by commas, not ${options.masters}`);
  process.exit(2);
}

const chosen = positionals.length > 0 ? positionals : COMPARISONS;
const names = chosen.includes(ALL) ? known : chosen;

// Before any suite is loaded. Workers inherit it.
if (options.before) process.env.BENCH_BEFORE = resolve(options.before);
const { isContender } = await import('./contenders.mjs');
const strangers = options.only?.split(',').filter((name) => !isContender(name, names)) ?? [];
const paths = { markdown: options.markdown, json: options.json && dirname(options.json) };
const mistakes = [
  ...strangers.map((name) => `There is no contender ${name} in ${names.join(', ')}`),
  ...(options.before && !existsSync(resolve(options.before, 'dist/esm/index.js'))
    ? [`--before ${options.before} is not built: npm run build`]
    : []),
  ...Object.entries(paths).flatMap(([option, path]) =>
    path && !existsSync(path) ? [`--${option}: ${path} does not exist`] : [],
  ),
];
if (mistakes.length > 0) {
  console.error(mistakes.join('\n'));
  process.exit(2);
}
await prepare();
const { printChecks, range, takeTables } = await import('./report.mjs');
const { pinProcessors } = await import('./measure/pinning.mjs');
// After the build, which may use all processors.
const pinned = pinProcessors();
const { spread } = await import('./measure/figures.mjs');
const SPEED = fileURLToPath(new URL('measure/speed.mjs', import.meta.url));
const RESULTS = new URL('results.md', import.meta.url);
const usual = Number(/the same work took (\d+) ms/.exec(await readFile(RESULTS, 'utf8'))?.[1]);
const version = await versionOfServer(findRedisServer());
console.log(`${cpus().length} cores (${pinned}), Node ${process.version}, ${version}
Two cores with nothing else to do are needed, 2 GB of memory, and 13 minutes for ${COMPARISONS.join(', ')}.`);
const results = {};
let broken = 0;
for (const name of names) {
  const { run } = await import(new URL(`${name}.mjs`, folder));
  const began = performance.now();
  const work = speed();
  // If one suite fails, its error is printed, and the other suites still run.
  const { figures, checks } = await run({
    quick: options.quick,
    masters,
    only: options.only?.split(','),
  }).catch((error) => {
    console.error(error);
    return { figures: undefined, checks: [{ promise: `${name} runs to its end`, found: error.message, kept: false }] };
  });
  printChecks(checks);
  console.log(`\n${name}: ${Math.round((performance.now() - began) / 1000)} s on ${cpus().length} cores`);
  if (options.markdown) await writePart(options.markdown, `bench ${name}`, pageOf(name, takeTables(), work));
  results[name] = { figures, checks };
  broken += checks.filter(({ kept }) => !kept).length;
}
if (options.json) await writeFile(options.json, `${JSON.stringify(results, undefined, 2)}\n`);

/** Milliseconds of always the same work, as the machine is now. */
function speed() {
  const work = spread(JSON.parse(execFileSync(process.execPath, [SPEED])));
  const beside = Number.isFinite(usual) ? `, ${(work.median / usual).toFixed(2)} of what is in results.md` : '';
  const noise = work.max / work.min > 1.2 ? ': other programs disturb this run' : '';
  console.log(`\nalways the same work took ${range(work)} ms${beside}${noise}`);
  return work;
}

function pageOf(name, tables, work) {
  const given = ['masters', 'only'].map((option) => (options[option] ? ` --${option} ${options[option]}` : ''));
  const command = `npm run bench -- ${name}${options.quick ? ' --quick' : ''}${given.join('')} --markdown ${options.markdown}`;
  const machine = `on ${cpus().length} cores (${pinned}), Node ${process.version}, ${version}`;
  const took = `always the same work took ${Math.round(work.median)} ms`;
  // A comparison with another build is for contributors.
  const published = tables.split('\n').filter((line) => !/^\|([^|]*\|)? before +\||of before /.test(line));
  return `Written by \`${command}\`, ${machine}; ${took}.\n\n${published.join('\n')}`;
}

process.exit(options.check && broken > 0 ? 1 : 0);
