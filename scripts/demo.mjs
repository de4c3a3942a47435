// Runs `npm run demo`, also on a fresh clone: three instances of sample/02-schedule, five masters, and their faults.
// Imports only Node's own modules and these scripts, because nothing else may be installed yet.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startInstances } from './demo/instances.mjs';
import { MemoryMasters, RedisMasters } from './demo/masters.mjs';
import { countPages, countReports, pagesIn, reportsIn, table } from './demo/observe.mjs';
import { ensureBuild } from './ensure-build.mjs';
import { ensureDependencies } from './ensure-dependencies.mjs';
import { ensureRedisServer } from './redis-servers.mjs';
import { mustRun } from './run.mjs';

const MASTERS = 5;
/** Of an import of the sample. */
const PAGES = 40;
/** After which an instance is killed. */
const KILL_AFTER = 15;
/** How long the reports are watched after the masters failed, in seconds. */
const AFTER_FAULT = 10;
/** For an import: it is due every ten seconds, new masters vote after four, and a crash blocks it for four. */
const DEADLINE = 45_000;
/** Allowed share of missed reports: a lock cannot make the timers of a busy machine fire, but a larger share is a fault. */
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
  console.log(`Three instances have two jobs: a report every second, an import of ${PAGES} pages every ten.`);
  const control = await withoutLocks(masters);
  const locked = await withLocks(masters);
  console.log('\nThe history of the import, as every instance has it:');
  for (const line of table(historyRows(locked))) console.log(`  ${line}`);
  console.log(`\n${table(rowsOf(locked, control)).join('\n')}\n`);
  const violations = violationsOf(locked);
  for (const violation of violations) console.log(`VIOLATED: ${violation}`);
  const took = ((performance.now() - start) / 1000).toFixed(0);
  console.log(
    violations.length ? `Failed after ${took} s.` : `No report was made twice, and no page was left out. ${took} s.`,
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

/** Each instance makes each report, and imports each page. */
async function withoutLocks(masters) {
  const run = await begin('Without locks', masters, false);
  await run.until('an import', () => run.pages().length >= 3 * PAGES);
  return run.end();
}

/** An instance is killed in the middle of an import; when another one goes on, two masters fail. */
async function withLocks(masters) {
  const run = await begin('With locks', masters, true);
  const { instance } = await run.until('an import', () => run.pages()[KILL_AFTER - 1]);
  const victim = run.instances.find(({ name }) => name === instance);
  const other = run.instances.find(({ name }) => name !== instance);
  await victim.kill();
  run.say(`${victim.end}: instance ${instance}, in the middle of the import`);
  const next = await run.until('the second attempt', () => run.pages().find(({ attempt }) => attempt > 1));
  run.say(`instance ${next.instance} goes on with the import, at page ${next.page + 1}`);

  masters.pause(1);
  await masters.kill(0);
  run.say(`killed: ${masters.names[0]}; frozen: ${masters.names[1]}`);
  const fault = Math.ceil(Date.now() / 1000);
  const history = await run.until('the end of the import', () => finishedImport(other, next.tick));
  await sleep((fault + AFTER_FAULT) * 1000 - Date.now());
  return { history, ...(await run.end(fault)) };
}

/** Starts three instances, and shows each second what they do once they make reports. */
async function begin(title, masters, locks) {
  const store = await mkdtemp(join(tmpdir(), 'redlock-demo-'));
  cleanUp(() => rm(store, { recursive: true, force: true }));
  console.log(`\n== ${title}`);
  const instances = await startInstances({ masters: masters.sources, store, locks }, cleanUp);
  const deadline = Date.now() + DEADLINE;
  const until = async (what, look) => {
    for (;;) {
      const found = await look();
      if (found) return found;
      if (Date.now() > deadline) throw new Error(`${what} did not happen within ${DEADLINE} ms`);
      await sleep(20);
    }
  };
  // In the first second, some of them may not have started.
  const from = 1 + (await until('a report', () => reportsIn(store).keys().next().value));
  const say = (text) => console.log(`        ${text}`);
  const showing = setInterval(() => {
    const second = Math.floor(Date.now() / 1000) - from;
    const { once, twice } = countReports(reportsIn(store), from, from + second);
    const pages = countPages(pagesIn(store));
    console.log(
      `  ${String(second).padStart(2)} s  reports: ${once} once, ${twice} twice or more  ` +
        `pages: ${pages.all} of ${PAGES}, ${pages.twice} twice or more`,
    );
  }, 1000);
  cleanUp(() => clearInterval(showing));
  const end = async (since = from) => {
    const now = Math.floor(Date.now() / 1000);
    clearInterval(showing);
    await Promise.all(instances.map((instance) => instance.stop()));
    const reports = reportsIn(store);
    const twiceEver = [...reports.values()].filter((count) => count > 1).length;
    return {
      reports: countReports(reports, from, now),
      since: countReports(reports, since, now),
      twiceEver,
      pages: pagesIn(store),
    };
  };
  return { instances, pages: () => pagesIn(store), say, until, end };
}

/** The attempts at a tick, newest first, once one of them has succeeded. */
async function finishedImport({ url }, tick) {
  const response = await fetch(`${url}/jobs`, { signal: AbortSignal.timeout(5_000) });
  // Too few masters answered in time, on a busy machine.
  if (response.status === 503) return undefined;
  const { runs } = (await response.json()).find(({ name }) => name === 'import');
  const attempts = runs.filter(({ scheduledFor }) => scheduledFor === tick);
  return attempts[0]?.outcome === 'ok' ? attempts : undefined;
}

function historyRows({ history }) {
  const time = (value) => (value ? value.slice(11, 23) : '-');
  return [
    ['scheduled for', 'started', 'ended', 'instance', 'attempt', 'outcome'],
    ...history.map(({ scheduledFor, startedAt, endedAt, instance, attempt, outcome }) => [
      ...[time(scheduledFor), time(startedAt), time(endedAt), instance, `${attempt}`, outcome],
    ]),
  ];
}

function rowsOf(locked, control) {
  const row = (name, value) => [name, value(locked), value(control)];
  return [
    ['', 'with locks', 'without locks'],
    row('reports made exactly once', ({ reports }) => `${reports.once} of ${reports.all}`),
    row('reports made twice or more', ({ reports }) => `${reports.twice}`),
    row('reports missed', ({ reports }) => `${reports.missed}`),
    row('pages imported', ({ pages }) => `${countPages(pages).all} of ${PAGES}`),
    row('pages imported twice or more', ({ pages }) => `${countPages(pages).twice}`),
  ];
}

/** The results that must never occur on any machine. */
function violationsOf({ history, since, twiceEver, pages }) {
  const violations = [];
  const outcomes = history.map(({ attempt, outcome }) => `${attempt} ${outcome}`).reverse();
  if (outcomes.at(-1) !== `${outcomes.length} ok` || outcomes.length < 2) {
    violations.push(`the attempts at the import were: ${outcomes.join(', ')}`);
  }
  const { all, twice } = countPages(pages);
  if (all !== PAGES) violations.push(`${PAGES - all} pages were not imported`);
  // Each attempt that was cut off may have stored one page without its checkpoint.
  if (twice > history.length - 1) violations.push(`${twice} pages were imported twice`);
  if (twiceEver > 0) violations.push(`${twiceEver} reports were made more than once`);
  if (since.missed > since.all * MAX_MISSED)
    violations.push(`${since.missed} reports were not made after masters failed`);
  return violations;
}

/** Ends everything that was started, latest first. */
function leave() {
  leaving ??= (async () => {
    for (const action of cleanUps.reverse()) await Promise.resolve(action()).catch(() => {});
  })();
  return leaving;
}
