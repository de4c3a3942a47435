// Runs `npm test`, also on a fresh clone: installs or builds everything that is needed first. Imports only Node's own
// modules and these scripts, because nothing else may be installed yet.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuild } from './ensure-build.mjs';
import { ensureChromium } from './ensure-chromium.mjs';
import { ensureDependencies } from './ensure-dependencies.mjs';
import { ensurePostgres } from './ensure-postgres.mjs';
import { ensurePrometheus } from './ensure-prometheus.mjs';
import { ensureRedisServer } from './redis-servers.mjs';
import { optionsOf } from './options.mjs';
import { root, run } from './run.mjs';

/** Many tests wait for a server or a timer: with a worker for each processor, both would often be idle. */
const WORKERS = 3;
const NODE_FLAGS = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];

/** The parts that can be run alone: `npm run test:e2e`. */
const PARTS = {
  integration: () => step('Real servers', () => jest('jest.config.js', ['test/contract', 'test/integration'])),
  e2e: async () => {
    await step('Applications on Nest 12', () => jest('jest.config.js', ['test/e2e']));
    await step('Applications on Nest 11', () => jest('jest.nest11.config.js'));
  },
  samples: testSamples,
};

const { positionals } = optionsOf({ allowPositionals: true, options: {} });
const unknown = positionals.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}; there are: ${Object.keys(PARTS).join(', ')}`);
  process.exit(2);
}

const results = await mkdtemp(join(tmpdir(), 'redlock-results-'));
const total = { passed: 0, failed: 0 };
try {
  await prepare();
  if (positionals.length > 0) for (const name of positionals) await PARTS[name]();
  else await everything();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  total.failed += 1;
} finally {
  await rm(results, { recursive: true, force: true });
}
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

async function prepare() {
  await ensureDependencies();
  console.log(`Redis server: ${await ensureRedisServer()}`);
  console.log(`PostgreSQL: ${(await ensurePostgres()) ?? 'none, so the sample that guards a row uses SQLite only'}`);
  console.log(
    `Prometheus: ${(await ensurePrometheus())?.prometheus ?? 'none, so the rules of the sample are not run'}`,
  );
  // Without a browser, the tests of the sample with a page fail and say so; the other tests need none.
  console.log(`Chromium: ${await ensureChromium().catch((error) => error.message)}`);
  await ensureBuild();
}

async function everything() {
  await step('Types, with the misuses that must not compile', typecheck);
  await step('Tests on Nest 12', () => jest('jest.config.js'));
  await step('Host matrix on Nest 11', () => jest('jest.nest11.config.js'));
  await testSamples();
}

async function testSamples() {
  for (const sample of await samples()) await step(`Sample ${sample.name}`, () => testSample(sample));
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

async function jest(config, folders = []) {
  const report = join(results, `${config}.json`);
  const bin = join(root, 'node_modules/jest/bin/jest.js');
  const args = [...NODE_FLAGS, bin, '--config', config, '--maxWorkers', String(WORKERS)];
  args.push('--json', '--outputFile', report, ...folders);
  return counts(report, await run(process.execPath, args));
}

async function testSample({ name, scripts }) {
  if (scripts.build) {
    const built = await run('npm', ['run', '--silent', 'build', '-w', name]);
    if (built !== 0) return verdict(built);
  }
  const report = join(results, `${name}.json`);
  const args = ['test', '--silent', '-w', name, '--', '--json', '--outputFile', report];
  return counts(report, await run('npm', args));
}

async function samples() {
  const folders = await readdir(join(root, 'sample')).catch(() => []);
  const manifests = folders.sort().map((folder) => readFile(join(root, 'sample', folder, 'package.json'), 'utf8'));
  return (await Promise.all(manifests)).map((text) => JSON.parse(text)).filter(({ scripts }) => scripts?.test);
}

/**
 * The counts of a jest report. A suite that could not run counts as a failure, and so does an unexplained exit code.
 */
async function counts(report, exitCode) {
  const json = await readFile(report, 'utf8').catch(() => undefined);
  if (json === undefined) return verdict(exitCode === 0 ? 'no report' : exitCode);
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = JSON.parse(json);
  const failed = numFailedTests + numRuntimeErrorTestSuites;
  return { passed: numPassedTests, failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}

function verdict(exitCode) {
  return exitCode === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}
