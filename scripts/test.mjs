// Runs `npm test` and `npm run test:all`, also on a fresh clone: installs or builds everything that is needed first.
// Imports only Node's own modules and these scripts, because nothing else may be installed yet. Which suite belongs to
// which tier: tiers.mjs.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { ensureBuild } from './ensure-build.mjs';
import { ensureDependencies } from './ensure-dependencies.mjs';
import { ensureSqlDrivers } from '../test/sql/drivers.mjs';
import { ensureChromium, ensureMariadb, ensurePostgres, ensurePrometheus } from './programs.mjs';
import { ensureRedisServer } from './redis-servers.mjs';
import { optionsOf } from './options.mjs';
import { root, run } from './run.mjs';
import { checkNames, inTiers, LEFT_OUT, NEST_11_SMOKE, suitesIn } from './tiers.mjs';

/** Many tests wait for a server or a timer: with a worker for each processor, both would often be idle. */
const WORKERS = 4;
const NODE_FLAGS = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const SLOWEST = 10;
/** The part that the first tier makes of long loads and properties in suites of both tiers. */
const LOAD_SHARE = '0.25';

/** The parts that can be run alone, in both tiers: `npm run test:e2e`. */
const PARTS = {
  integration: () => nest12('Real servers', ['test/contract', 'test/integration', 'test/sql']),
  e2e: async () => {
    await nest12('Applications on Nest 12', ['test/e2e']);
    await nest11();
  },
  samples: testSamples,
};

const { values, positionals } = optionsOf({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    rest: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
  },
});
const parts = values.changed ? [] : positionals;
const unknown = parts.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are: ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}
const tiers = parts.length > 0 || (values.all && !values.rest) ? [1, 2] : [values.rest ? 2 : 1];
const changed = values.changed ? changedSince(positionals[0] ?? 'HEAD') : undefined;
const isOfTiers = inTiers(tiers);
/** A suite that has changed runs, whatever its tier. */
const isChosen = (path) => isOfTiers(path) || changed?.includes(path);
const hasTypes =
  parts.length === 0 && tiers.includes(1) && (!changed || changed.some((path) => /\.(?:[mc]?[jt]s|md)$/.test(path)));

const results = await mkdtemp(join(tmpdir(), 'redlock-results-'));
const total = { passed: 0, failed: 0 };
/** Of all suites: path and milliseconds. */
const durations = [];
/** The check of the types, which fills the pauses of the suites. */
let types;
try {
  await prepare();
  if (parts.length > 0) for (const name of parts) await PARTS[name]();
  else if (changed) await touched();
  else await everything();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  total.failed += 1;
} finally {
  await rm(results, { recursive: true, force: true });
}
summarize();
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || (total.passed === 0 && !changed) ? 1 : 0;

async function prepare() {
  await checkNames();
  await ensureDependencies();
  console.log(`Redis server: ${await ensureRedisServer()}`);
  const needs = (...names) => tiers.includes(2) && (parts.length === 0 || names.some((name) => parts.includes(name)));
  if (needs('integration')) {
    console.log(`PostgreSQL: ${(await ensurePostgres()) ?? 'none, so fences are not shown on it'}`);
    console.log(`MariaDB: ${(await ensureMariadb())?.server ?? 'none, so fences are not shown on it'}`);
    await ensureSqlDrivers();
  }
  if (needs('samples')) {
    console.log(
      `Prometheus: ${(await ensurePrometheus())?.prometheus ?? 'none, so the rules of the sample are not run'}`,
    );
  }
  // Without a browser, the tests of the dashboard fail and say so; the other tests need none.
  if (needs()) console.log(`Chromium: ${await ensureChromium().catch((error) => error.message)}`);
  await ensureBuild();
  types = hasTypes ? typecheck() : undefined;
}

async function everything() {
  const chosen = await samples();
  await buildNeeded(chosen);
  // In one run, so that no worker waits for the longest suite of the others.
  const suites = [...(await suitesIn('test')).filter(isChosen), ...(await suitesOf(chosen))];
  const folders = chosen.map(({ folder }) => folder);
  await step('Tests on Nest 12, and the samples', () =>
    jest('all', suites, ['--config', 'jest.config.js', '--projects', 'jest.config.js', ...folders]),
  );
  await checkedTypes();
  await nest11();
}

/** What the changed files are used by. */
async function touched() {
  await checkedTypes();
  const code = changed.filter((path) => /^(?:lib|test|scripts)\//.test(path) && existsSync(join(root, path)));
  if (code.length > 0) {
    const related = relatedTo(code).filter(isChosen);
    await step('Suites that import a changed file', () => jest('jest.config.js', related));
  }
  if (changed.some((path) => path.endsWith('.md'))) await nest12('Documentation', ['test/docs']);
  if (changed.some((path) => /^(?:test\/nest11\/|jest\.nest11)/.test(path))) await nest11();
  await testSamples();
}

async function checkedTypes() {
  if (types) await step('Types, with the misuses that must not compile', () => types);
}

async function nest12(title, folders) {
  const suites = (await Promise.all(folders.map(suitesIn))).flat().filter(isChosen);
  await step(title, () => jest('jest.config.js', suites));
}

async function nest11() {
  const isSmoke = (suite) => NEST_11_SMOKE.includes(suite);
  const suites = (await suitesIn('test/e2e')).filter((suite) => tiers.includes(isSmoke(suite) ? 1 : 2));
  await step('Applications on Nest 11', () => jest('jest.nest11.config.js', suites));
}

async function testSamples() {
  const chosen = await samples();
  if (chosen.length === 0) return;
  await buildNeeded(chosen);
  const suites = await suitesOf(chosen);
  await step('Samples', () => jest('samples', suites, ['--projects', ...chosen.map(({ folder }) => folder)]));
}

/** The suites that start a sample are in the second tier. */
async function buildNeeded(chosen) {
  if (changed || tiers.includes(2)) await step('Builds of samples', () => build(chosen.map(({ name }) => name)));
}

async function suitesOf(chosen) {
  return (await Promise.all(chosen.map(({ folder }) => suitesIn(`${folder}/test`)))).flat().filter(isChosen);
}

async function step(title, action) {
  console.log(`\n== ${title}`);
  const { passed, failed } = await action();
  console.log(`   ${passed} passed, ${failed} failed`);
  total.passed += passed;
  total.failed += failed;
}

async function typecheck() {
  return verdict(await run('npm', ['run', '--silent', 'typecheck']));
}

async function jest(name, suites, settings = ['--config', name]) {
  if (suites.length === 0) return { passed: 0, failed: 0 };
  const report = join(results, `${name}.json`);
  const bin = join(root, 'node_modules/jest/bin/jest.js');
  const args = [...NODE_FLAGS, bin, ...settings, '--maxWorkers', String(WORKERS)];
  args.push('--json', '--outputFile', report, '--runTestsByPath', ...suites);
  const env = tiers.includes(2) || changed ? {} : { LOAD_SHARE, POSTGRES: 'none' };
  return counts(report, await run(process.execPath, args, { env }));
}

async function build(names) {
  const failed = [];
  const queue = names.values();
  // The first tier checks all types at once, with those of the library and the tests; the second each sample by its own settings.
  const options = tiers.includes(2) ? [] : ['--', '--noCheck'];
  const lane = async () => {
    for (const name of queue) {
      if ((await run('npm', ['run', '--silent', 'build', '-w', name, ...options])) !== 0) failed.push(name);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  for (const name of failed) console.error(`The build of ${name} failed`);
  return { passed: names.length - failed.length, failed: failed.length };
}

async function samples() {
  const folders = (await readdir(join(root, 'sample')).catch(() => [])).sort().map((name) => `sample/${name}`);
  const all = folders.map(async (folder) => ({
    folder,
    ...JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8')),
  }));
  const isTouched = ({ folder }) => !changed || changed.some((path) => path.startsWith(`${folder}/`));
  return (await Promise.all(all)).filter((sample) => sample.scripts?.test && isTouched(sample));
}

/** Paths that differ from this commit, the new ones included. */
function changedSince(ref) {
  const lines = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
  return [...lines('diff', '--name-only', ref, '--'), ...lines('ls-files', '--others', '--exclude-standard')];
}

/** The suites that import one of these files, and those among them. */
function relatedTo(files) {
  const bin = join(root, 'node_modules/jest/bin/jest.js');
  const args = [...NODE_FLAGS, bin, '--config', 'jest.config.js', '--listTests', '--json', '--findRelatedTests'];
  const listed = execFileSync(process.execPath, [...args, ...files], { cwd: root, encoding: 'utf8' });
  return JSON.parse(listed).map(pathOf);
}

function pathOf(file) {
  return relative(root, file).split(sep).join('/');
}

/**
 * The counts of a jest report. A suite that could not run counts as a failure, and so does an unexplained exit code.
 */
async function counts(report, exitCode) {
  const json = await readFile(report, 'utf8').catch(() => undefined);
  if (json === undefined) return verdict(exitCode === 0 ? 'no report' : exitCode);
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults } = JSON.parse(json);
  for (const { name, startTime, endTime } of testResults) durations.push([pathOf(name), endTime - startTime]);
  const failed = numFailedTests + numRuntimeErrorTestSuites;
  return { passed: numPassedTests, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}

function verdict(exitCode) {
  return exitCode === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function summarize() {
  const seconds = (milliseconds) => `${Math.round(milliseconds / 1_000)} s`;
  const slowest = durations.sort(([, one], [, other]) => other - one).slice(0, SLOWEST);
  if (slowest.length > 0) console.log('\nThe slowest suites');
  for (const [path, duration] of slowest) console.log(`${seconds(duration).padStart(7)}  ${path}`);
  const sum = durations.reduce((all, [, duration]) => all + duration, 0);
  console.log(
    `\n${durations.length} suites took ${seconds(sum)} of workers; all of this took ${seconds(process.uptime() * 1_000)}`,
  );
  if (changed) {
    console.log(
      '\nLeft out, because nothing in this change is imported by it: the other suites. npm test runs the first tier,',
    );
    console.log('npm run test:all runs everything');
  } else if (!tiers.includes(2)) {
    console.log('\nLeft out (npm run test:all -- --rest):');
    for (const line of LEFT_OUT) console.log(`- ${line}`);
  } else if (!tiers.includes(1)) {
    console.log('\nLeft out: the first tier (npm test)');
  }
}
