import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startInstances } from './instances.mjs';
import { countTicks, runsPerSecond } from './observe.mjs';
import { table } from './table.mjs';

/** The import of the sample: see sample/02-schedule/src/import/import.job.ts. */
const PAGES = 40;
const KILL_AFTER = 15;
/** The import is due every ten seconds, new masters vote after three, and a crash blocks it for four. */
const DEADLINE = 45_000;

/** Kills an instance in the middle of an import. Resolves with what ran and with the violations. */
export async function killDuringImport(masters, cleanUp) {
  const store = await mkdtemp(join(tmpdir(), 'redlock-demo-'));
  cleanUp(() => rm(store, { recursive: true, force: true }));
  const instances = await startInstances({ masters: masters.sources, store, locks: true }, cleanUp);
  const deadline = Date.now() + DEADLINE;
  const until = async (what, look) => {
    for (;;) {
      const found = await look();
      if (found) return found;
      if (Date.now() > deadline) throw new Error(`${what} did not happen within ${DEADLINE} ms`);
      await sleep(20);
    }
  };

  const begun = await until('an import', async () => (await pagesIn(store))[KILL_AFTER - 1]);
  const from = Math.ceil(Date.now() / 1000);
  const victim = instances.find(({ name }) => name === begun.instance);
  const others = instances.filter((instance) => instance !== victim);
  await victim.kill();
  console.log(
    `  ${victim.end}: instance ${victim.name}, which was importing, after page ${(await pagesIn(store)).length}`,
  );
  // Without load on the masters: the history is read when the end is near.
  await until('the last page', async () =>
    (await pagesIn(store)).some(({ tick, page }) => tick === begun.tick && page === PAGES - 1),
  );
  const history = await until('the second attempt', () => finishedImport(others[0], begun.tick));
  const pages = (await pagesIn(store)).filter(({ tick }) => tick === begun.tick);
  console.log(`  continued: by instance ${pages.at(-1).instance}, at page ${pagesOf(pages, 2)[0] + 1}`);
  await Promise.all(others.map((instance) => instance.stop()));
  const reports = await runsPerSecond(store);
  return { history, pages, ticks: countTicks(reports, from, Math.max(...reports.keys())) };
}

/** Lines for the reader. */
export function showJobs({ history, pages, ticks }) {
  const time = (value) => (value ? value.slice(11, 23) : '-');
  const rows = history.map(({ scheduledFor, startedAt, endedAt, instance, attempt, outcome }) => [
    ...[time(scheduledFor), time(startedAt), time(endedAt), instance, `${attempt}`, outcome],
  ]);
  const twice = pages.length - new Set(pages.map(({ page }) => page)).size;
  return [
    `  pages imported: ${new Set(pages.map(({ page }) => page)).size} of ${PAGES}, ${twice} of them twice`,
    `  reports of the others meanwhile: ${ticks.once} of ${ticks.expected} once, ${ticks.twice} twice or more`,
    '  The history of the import, as every instance has it:',
    ...table([['scheduled for', 'started', 'ended', 'instance', 'attempt', 'outcome'], ...rows]).map(
      (line) => `    ${line}`,
    ),
  ];
}

/** The results that must never occur on any machine. */
export function violationsOfJobs({ history, pages, ticks }) {
  const violations = [];
  const outcomes = history.map(({ attempt, outcome }) => `${attempt} ${outcome}`).reverse();
  if (outcomes.at(-1) !== `${outcomes.length} ok` || outcomes.length < 2) {
    violations.push(`the attempts at the import were: ${outcomes.join(', ')}`);
  }
  const numbers = new Set(pages.map(({ page }) => page));
  if (numbers.size !== PAGES) violations.push(`${PAGES - numbers.size} pages were not imported`);
  // Each attempt that was cut off may have stored one page without its checkpoint.
  const twice = pages.length - numbers.size;
  if (twice > history.length - 1) violations.push(`${twice} pages were imported twice`);
  if (ticks.twiceEver > 0) violations.push(`${ticks.twiceEver} reports were made more than once`);
  return violations;
}

async function pagesIn(store) {
  const log = await readFile(join(store, 'import.log'), 'utf8').catch(() => '');
  return log
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '))
    .map(([tick, page, instance, attempt]) => ({ tick, page: Number(page), instance, attempt: Number(attempt) }));
}

function pagesOf(pages, attempt) {
  return pages.filter((each) => each.attempt === attempt).map(({ page }) => page);
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
