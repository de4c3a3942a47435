// Runs `npm run demo`, also on a fresh clone: three instances of sample/02-schedule, five masters, and their faults.
// Imports only Node's own modules and these scripts, because nothing else may be installed yet.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startInstances } from './demo/instances.mjs';
import { killDuringImport, showJobs, violationsOfJobs } from './demo/jobs.mjs';
import { Load } from './demo/load.mjs';
import { MemoryMasters, RedisMasters } from './demo/masters.mjs';
import { acquisitions, countTicks, latency, runsPerSecond } from './demo/observe.mjs';
import { milliseconds, table } from './demo/table.mjs';
import { ensureBuild } from './ensure-build.mjs';
import { ensureDependencies } from './ensure-dependencies.mjs';
import { ensureRedisServer } from './redis-servers.mjs';
import { mustRun } from './run.mjs';

const MASTERS = 5;
/** `seconds` is the length of a run, `faultAfter` the number of seconds before the masters fail. */
const CONTROL = { title: 'without locks', locks: false, seconds: 3, stock: 30 };
const LOCKED = { title: 'with locks', locks: true, seconds: 10, stock: 190, faultAfter: 5 };
/** Requests that each instance gets at once, five times per second. */
const CUSTOMERS = 2;
/** How long after its second an instance may still run a tick, in milliseconds. */
const LAST_TICK = 700;
/**
 * Allowed share of missed ticks: a lock cannot make the timers of a busy machine fire, but a larger share is a fault.
 */
const MAX_MISSED = 0.1;

const cleanUps = [];
const cleanUp = (action) => void cleanUps.push(action);
let leaving;
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  process.on(signal, () => void leave().finally(() => process.exit(code)));
}

try {
  process.exitCode = (await demo()) ? 0 : 1;
} catch (error) {
  // Errors during the shutdown mean nothing.
  if (!leaving) console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await leave();
}

async function demo() {
  await ensureDependencies();
  const Masters = await findMasters();
  await ensureBuild();
  await mustRun('npm', ['run', '--silent', 'build', '-w', 'sample-02-schedule']);

  const start = performance.now();
  const masters = await Masters.start(MASTERS, cleanUp);
  console.log(`Masters: ${masters.names.join(', ')}`);
  const control = await trial(CONTROL, masters);
  console.log('\n== Three instances with jobs: a report every second, an import of 40 pages every ten');
  const jobs = await killDuringImport(masters, cleanUp);
  for (const line of showJobs(jobs)) console.log(line);
  const locked = await trial(LOCKED, masters);
  const violations = [...violationsOfJobs(jobs), ...violationsOf(locked)];
  console.log(`\n${table(rowsOf(locked, control)).join('\n')}\n`);
  console.log(`What the dead and the paused master cost: ${costOf(locked)}.`);
  console.log(`Without locks, ${sumUp(control)}.`);
  for (const violation of violations) console.log(`VIOLATED: ${violation}`);
  const took = ((performance.now() - start) / 1000).toFixed(1);
  console.log(
    violations.length
      ? `Failed after ${took} s.`
      : `No report was made twice, no page was left out, nothing was oversold. ${took} s.`,
  );
  return violations.length === 0;
}

async function findMasters() {
  try {
    await ensureRedisServer();
    return RedisMasters;
  } catch (error) {
    console.log(error.message);
    console.log('Without one: three applications in one process, on masters in its memory.\n');
    return MemoryMasters;
  }
}

/** One run of the three instances, from their start to their end. */
async function trial({ title, locks, seconds, stock, faultAfter }, masters) {
  const store = await mkdtemp(join(tmpdir(), 'redlock-demo-'));
  cleanUp(() => rm(store, { recursive: true, force: true }));
  const instances = await startInstances({ masters: masters.sources, store, locks }, cleanUp);
  console.log(`\n== Three instances ${title}, ${stock} items in stock`);

  const load = new Load(instances, CUSTOMERS);
  await load.fillStock(stock);
  const from = Math.ceil(Date.now() / 1000);
  await sleep(from * 1000 - Date.now());
  load.start();
  let faultAt = Infinity;
  for (let second = 1; second <= seconds; second++) {
    await sleep((from + second) * 1000 - Date.now());
    if (second === faultAfter) faultAt = await fail(masters);
    const ticks = countTicks(await runsPerSecond(store), from, from + second);
    console.log(
      `  ${String(second).padStart(2)} s  ticks: ${ticks.once} once, ${ticks.twice} twice or more  ` +
        `sold: ${load.sold}, refused as sold out: ${load.soldOut}, failed: ${load.failures.length}`,
    );
  }
  const until = from + seconds;
  await Promise.all([load.stop(), sleep(LAST_TICK)]);

  const samples = await acquisitions(instances);
  const left = await load.stockLeft();
  await Promise.all(instances.map((instance) => instance.stop()));
  return {
    ticks: countTicks(await runsPerSecond(store), from, until),
    ...{ stock, left, sold: load.sold, soldOut: load.soldOut, failures: load.failures },
    // Without the first second, in which a process is slow because it has just started.
    before: latency(samples, (from + 1) * 1000, faultAt),
    after: latency(samples, faultAt, Infinity),
  };
}

async function fail(masters) {
  const at = Date.now();
  masters.pause(1);
  await masters.kill(0);
  console.log(`        killed: ${masters.names[0]}; paused: ${masters.names[1]}`);
  return at;
}

function rowsOf(locked, control) {
  const row = (name, value) => [name, value(locked), value(control)];
  return [
    ['', LOCKED.title, CONTROL.title],
    row('ticks run exactly once', ({ ticks }) => `${ticks.once} of ${ticks.expected}`),
    row('ticks run twice or more', ({ ticks }) => `${ticks.twice}`),
    row('ticks missed', ({ ticks }) => `${ticks.missed}`),
    row('items sold, of a stock of', ({ sold, stock }) => `${sold} of ${stock}`),
    row('items left in the books', ({ left }) => `${left}`),
    row('refused as sold out', ({ soldOut }) => `${soldOut}`),
    row('requests failed', ({ failures }) => `${failures.length}`),
    ['acquire p50, all masters up', milliseconds(locked.before.p50), '-'],
    ['acquire p99, all masters up', milliseconds(locked.before.p99), '-'],
    ['acquire p50, one dead, one paused', milliseconds(locked.after.p50), '-'],
    ['acquire p99, one dead, one paused', milliseconds(locked.after.p99), '-'],
    ['acquisitions measured', `${locked.before.count} + ${locked.after.count}`, '-'],
    ['acquisitions failed', `${locked.before.failed} + ${locked.after.failed}`, '-'],
  ];
}

function costOf({ before, after }) {
  const change = (name) => {
    const difference = after[name] - before[name];
    const sign = difference < 0 ? '-' : '+';
    return `${name} ${sign}${milliseconds(Math.abs(difference))} (x${(after[name] / before[name]).toFixed(2)})`;
  };
  return `${change('p50')}, ${change('p99')}, ${after.failed} of ${after.count} acquisitions`;
}

function sumUp({ ticks, sold, stock }) {
  return `${ticks.once} of ${ticks.expected} ticks ran once, and ${sold} items were sold of ${stock}`;
}

/** The results that must never occur on any machine. */
function violationsOf({ ticks, stock, left, sold, failures, before, after }) {
  const violations = failures.slice(0, 10).map((failure) => `a request failed: ${failure}`);
  if (ticks.twiceEver > 0) violations.push(`${ticks.twiceEver} ticks ran more than once`);
  if (ticks.missed > ticks.expected * MAX_MISSED) violations.push(`${ticks.missed} ticks did not run`);
  if (sold > stock) violations.push(`${sold} items were sold of ${stock}`);
  if (sold + left !== stock) violations.push(`${sold} sold and ${left} left are not ${stock}`);
  const failed = before.failed + after.failed;
  if (failed > 0) violations.push(`${failed} acquisitions failed although a majority of the masters was up`);
  return violations;
}

/** Ends everything that was started, latest first. */
function leave() {
  leaving ??= (async () => {
    for (const action of cleanUps.reverse()) await Promise.resolve(action()).catch(() => {});
  })();
  return leaving;
}
