// From an empty folder to a locked cron job on three instances, as the README describes. The code comes from the
// README; only the addresses, the time of the job and its work are replaced.
import { equal, ok } from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseMarkdown } from '../../scripts/docs/markdown.mjs';
import { root } from '../../scripts/run.mjs';
import { generate, watch, withWords } from './application.mjs';
import { outputOf, pathWith } from './command.mjs';

/** Seconds from one tick to the next. */
const PERIOD = 3;
const TICKS = 3;
const INSTANCES = 3;

/** One cell. */
export function newcomerCell({ tarball, node, version, masters }) {
  return {
    ...{ table: 'newcomer', row: 'cron job of the README, three instances', column: `Node ${version}`, part: 'ticks' },
    run: async () => {
      const [introduction, ...sections] = (await readFile(join(root, 'README.md'), 'utf8')).split('\n## ');
      const section = sections.find((each) => each.startsWith('A cron job on several instances\n'));
      const packages = [introduction, section].flatMap((text) => packagesOf(codeOf(text, 'sh')));
      // Use the tarball instead, as the README says for as long as the package is not published.
      ok(packages.includes('nestjs-redlock'));
      const named = packages.map((name) => (name === 'nestjs-redlock' ? tarball : name));
      const app = await generate('newcomer', 'nest12', node, named);
      await writeFile(join(app, 'src/app.module.ts'), jobOf(codeOf(section, 'ts'), masters));
      await outputOf('npm', ['run', 'build'], { cwd: app, env: pathWith(node) });
      await watch(app, node, { times: INSTANCES, isDone: haveTicked });
    },
  };
}

/** The only fenced code block of a language. */
function codeOf(section, language) {
  const blocks = parseMarkdown('README.md', section).blocks.filter((block) => block.language === language);
  equal(blocks.length, 1, `There are ${blocks.length} blocks of ${language} instead of one:\n${section}`);
  return blocks[0].text;
}

function packagesOf(line) {
  const [npm, command, ...names] = line.split(' ');
  equal(`${npm} ${command}`, 'npm install');
  return names;
}

/** The job of the README, and beside it the same one without a lock, which runs on all instances. */
function jobOf(code, masters) {
  return withWords(code, {
    "['redis://127.0.0.1:6379']": JSON.stringify(masters),
    'CronExpression.EVERY_DAY_AT_1AM': `'*/${PERIOD} * * * * *'`,
    'CronExpression, ScheduleModule': 'Cron, ScheduleModule',
    // On a busy machine an instance may lose the lock, and the tick runs again, as the README says.
    'async report(run: JobRun): Promise<void> {}': `async report(run: JobRun): Promise<void> {
    if (run.attempt === 1) console.log('report ' + run.scheduledFor.getTime());
  }`,
    'providers: [ReportJob]': 'providers: [ReportJob, Unlocked]',
    '@Module(': `
@Injectable()
export class Unlocked {
  @Cron('*/${PERIOD} * * * * *')
  run(): void { console.log('unlocked ' + Date.now()); }
}

@Module(`,
  });
}

/** Whether enough ticks have reached all instances and the job has run on one of them each time. */
function haveTicked(outputs) {
  // The last tick may still be in progress.
  const now = tickAt(Date.now());
  const ticks = countTicks(outputs).filter(({ tick }) => tick < now);
  checkTicks(ticks, outputs.join('\n'));
  return ticks.filter(({ unlocked, report }) => unlocked === INSTANCES && report === 1).length >= TICKS;
}

function countTicks(outputs) {
  const ticks = new Map();
  for (const [, job, time] of outputs.join('\n').matchAll(/^(report|unlocked) (\d+)$/gm)) {
    const tick = tickAt(Number(time));
    const counts = ticks.get(tick) ?? { tick, report: 0, unlocked: 0 };
    counts[job] += 1;
    ticks.set(tick, counts);
  }
  return [...ticks.values()];
}

/** A timer may fire a little early, and as late as a busy machine makes it. */
function tickAt(time) {
  return Math.floor((time + 500) / (PERIOD * 1_000));
}

function checkTicks(ticks, output) {
  // New masters vote a few seconds after the start.
  const first = Math.min(...ticks.filter(({ report }) => report > 0).map(({ tick }) => tick));
  for (const { tick, report, unlocked } of ticks) {
    ok(report <= 1, `tick ${tick} ran ${report} times`);
    // If a busy machine keeps a quorum from answering in time, that is an outage, and nothing runs.
    const ran = report === 1 || unlocked < INSTANCES || tick < first || output.includes('cannot be decided on now');
    ok(ran, `tick ${tick} came to three instances and did not run:\n${output}`);
  }
}
