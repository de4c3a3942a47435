// `npm run test:servers`: the suites that talk to real servers, on each server of `npm run servers`. Imports nothing but
// Node's own modules and scripts at first, because nothing else may be there yet.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ensureBuild } from '../../scripts/ensure-build.mjs';
import { ensureDependencies } from '../../scripts/ensure-dependencies.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { ensureRedisServer, versionOfServer } from '../../scripts/redis-servers.mjs';
import { writePart } from '../../scripts/page.mjs';
import { root } from '../../scripts/run.mjs';
import { ensureServers } from './servers.mjs';
import { listOf } from '../matrix/report.mjs';

/** What runs on each server, and the column that shows it. */
const SUITES = {
  contract: 'test/contract/',
  integration: 'test/integration/',
  'simulated server': 'test/simulation/model.spec.ts',
};
/** Specs that would show the same on every server: of the torture tool. */
const SAME_ON_ALL = ['test/integration/torture'];
/** Most tests wait for a server or a timer, so two more than there are processors on a small machine. */
const WORKERS = 4;
/** For one server, in milliseconds: three minutes are usual on two processors, five when they are busy. */
const PATIENCE = 600_000;

const TEXT = `Written by \`npm run test:servers -- --markdown docs/matrix.md\`.

The contract of a master, the integration tests, and the comparison of the simulated server with a real one, on:`;

const { values } = optionsOf({
  options: {
    markdown: { type: 'string' },
    only: { type: 'string', default: '' },
    others: { type: 'boolean', default: false },
  },
});
if (values.markdown && (values.only || values.others))
  throw new Error('--markdown writes the whole table, --only and --others try a part of it');

await ensureDependencies();
await ensureBuild();
const provided = await ensureServers();
const skipped = values.others ? await versionOfServer(await ensureRedisServer()) : undefined;
if (skipped) console.log(`Without ${skipped}: npm run test:all runs the same suites on it`);
const servers = provided.filter(({ name, source }) => name !== skipped && `${name}, ${source}`.includes(values.only));
const results = [];
for (const server of servers) results.push(...(await resultsOn(server)));

const report = `## Servers\n\n${TEXT}\n\n${listOf(results)}`;
console.log(`\n${report}`);
if (values.markdown) await writePart(values.markdown, 'servers', report);
const failed = results.filter(({ status }) => status === 'failed').length;
console.log(`\n${servers.length} servers, ${Math.round(process.uptime())} s`);
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 || results.length === 0 ? 1 : 0;

/** One result for each suite. */
async function resultsOn({ name, source, program }) {
  const since = performance.now();
  console.log(`\n== ${name}, ${source}`);
  const folder = await mkdtemp(join(tmpdir(), 'redlock-servers-'));
  try {
    const output = join(folder, 'report.json');
    const exitCode = await jest(program, output);
    const report = JSON.parse(await readFile(output, 'utf8').catch(() => '{"testResults":[]}'));
    const seconds = Math.round((performance.now() - since) / 1_000);
    console.log(`   ${report.numPassedTests ?? 0} tests passed in ${seconds} s, exit code ${exitCode}`);
    return Object.entries(SUITES).map(([column, path]) => {
      const files = report.testResults.filter((file) => relative(root, file.name).startsWith(path));
      const passed = files.length > 0 && files.every(({ status }) => status === 'passed');
      return { row: `${name}, ${source}`, column, part: column, status: passed ? 'ok' : 'failed' };
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs all suites on one server. Resolves with the exit code; ends what takes too long with all its processes. */
function jest(program, outputFile) {
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const ignored = ['/node_modules/', ...SAME_ON_ALL].flatMap((path) => ['--testPathIgnorePatterns', path]);
  const report = ['--json', '--outputFile', outputFile, '--maxWorkers', String(WORKERS)];
  // The suites first: a list of patterns takes all arguments that follow it.
  const args = [...Object.values(SUITES), ...report, ...ignored];
  const child = spawn(process.execPath, [...flags, join(root, 'node_modules/jest/bin/jest.js'), ...args], {
    cwd: root,
    env: { ...process.env, REDIS_SERVER: program },
    // With an output file, jest writes its report to stderr; what a test prints explains a failure.
    stdio: ['ignore', 'inherit', 'inherit'],
    // A process group of its own, which ends as a whole.
    detached: true,
  });
  const end = () => process.kill(-child.pid, 'SIGKILL');
  const interrupted = () => {
    end();
    process.exit(130);
  };
  const signals = ['SIGINT', 'SIGTERM'];
  for (const signal of signals) process.once(signal, interrupted);
  const deadline = setTimeout(() => {
    console.error(`The suites took longer than ${PATIENCE / 1_000} s on ${program}`);
    end();
  }, PATIENCE);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal));
  }).finally(() => {
    clearTimeout(deadline);
    for (const signal of signals) process.off(signal, interrupted);
  });
}
