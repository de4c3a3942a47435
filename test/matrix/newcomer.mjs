// From an empty folder to a locked cron job on three instances, as the README describes. The code comes from the
// README; only the addresses, the time of the job and its work are replaced.
import { equal, ok } from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../../scripts/run.mjs';
import { npmInstall, outputOf, OWN, refresh } from './command.mjs';
import { NEST_CLI_12 } from './corners.mjs';
import { Instance } from './instance.mjs';
import { codeOf, sectionOf, withWords } from './report.mjs';
import { dropPackages, nestNew } from './runners.mjs';

/** Packages for tests and maintenance of the generated application: slow to install, and not needed to run it. */
const NOT_NEEDED = /vite|oxlint|prettier|supertest|^@nestjs\/(?:mau|testing)$|source-map/;
/** Seconds from one tick to the next. */
const PERIOD = 3;
const TICKS = 3;
/** Time limit for these ticks, in milliseconds. */
const PATIENCE = 90_000;

/** One cell. */
export function newcomerCell({ tarball, node, version, masters }) {
  return {
    ...{ table: 'newcomer', row: 'cron job of the README, three instances', column: `Node ${version}`, part: 'ticks' },
    run: async () => {
      const env = { PATH: [dirname(node), process.env.PATH].join(delimiter) };
      const readme = await readFile(join(root, 'README.md'), 'utf8');
      const app = await scaffold(env);
      await installAsDocumented(app, readme, tarball);
      await writeJob(app, sectionOf(readme, 'A cron job on several instances'), masters);
      await outputOf('npm', ['run', 'build'], { cwd: app, env });
      await watchTicks(app, node);
    },
  };
}

/** Runs `nest new` and removes what only tests of the application need. */
async function scaffold(env) {
  const app = join(OWN, 'newcomer/app');
  await nestNew(NEST_CLI_12, app, env, '--skip-tests', '--no-observe');
  await dropPackages(app, NOT_NEEDED);
  const tsconfig = await readFile(join(app, 'tsconfig.json'), 'utf8');
  await writeFile(join(app, 'tsconfig.json'), withWords(tsconfig, { '"vitest/globals", ': '' }));
  // No other machine on the network needs to reach this application.
  const main = await readFile(join(app, 'src/main.ts'), 'utf8');
  await writeFile(join(app, 'src/main.ts'), withWords(main, { 'process.env.PORT ?? 3000': "0, '127.0.0.1'" }));
  return app;
}

async function installAsDocumented(app, readme, tarball) {
  const sections = [readme.split('\n## ')[0], sectionOf(readme, 'A cron job on several instances')];
  const blocks = sections.map((section) => codeOf(section, 'sh').trim());
  const packages = blocks.flatMap((line) => {
    const [npm, command, ...names] = line.split(' ');
    equal(`${npm} ${command}`, 'npm install');
    return names;
  });
  // Use the tarball instead, as the README says for as long as the package is not published.
  ok(packages.includes('nestjs-redlock'));
  const named = packages.map((name) => (name === 'nestjs-redlock' ? tarball : name));
  const key = `${await readFile(join(app, 'package.json'), 'utf8')} ${named.join(' ')}`;
  await refresh(app, key, () => npmInstall(app, ...named));
}

async function writeJob(app, section, masters) {
  const job = withWords(codeOf(section, 'ts'), {
    "['redis://127.0.0.1:6379']": JSON.stringify(masters),
    'CronExpression.EVERY_DAY_AT_1AM': `'*/${PERIOD} * * * * *'`,
    'CronExpression, ScheduleModule': 'Cron, ScheduleModule',
    'async report(run: JobRun): Promise<void> {}': REPORT,
    'providers: [ReportJob]': 'providers: [ReportJob, Witness]',
    '@Module(': `${WITNESS}\n@Module(`,
  });
  await writeFile(join(app, 'src/app.module.ts'), job);
}

/** On a busy machine an instance may lose the lock, and the tick runs again, as the README says. */
const REPORT = `async report(run: JobRun): Promise<void> {
    if (run.attempt === 1) console.log('report ' + run.scheduledFor.getTime());
  }`;

/** The same job without a lock: it runs on all three instances, which shows what the lock does. */
const WITNESS = `
@Injectable()
export class Witness {
  @Cron('*/${PERIOD} * * * * *')
  see(): void { console.log('witness ' + Date.now()); }
}
`;

/**
 * Starts three instances. Resolves when enough ticks have reached all of them and the job has run on one of them each
 * time.
 */
async function watchTicks(app, node) {
  const instances = [1, 2, 3].map(() => new Instance(node, ['dist/main.js'], app));
  try {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      await sleep(100);
      // The last tick may still be in progress.
      const now = tickAt(Date.now());
      const ticks = countTicks(instances).filter(({ tick }) => tick < now);
      const output = instances.map((instance) => instance.output).join('\n');
      checkTicks(ticks, output);
      if (ticks.filter(({ witness, report }) => witness === instances.length && report === 1).length >= TICKS) return;
      ok(
        instances.every((instance) => instance.isRunning),
        `an instance has ended:\n${output}`,
      );
      ok(Date.now() < deadline, `no ${TICKS} ticks on all instances in time:\n${output}`);
    }
  } finally {
    await Promise.all(instances.map((instance) => instance.end()));
  }
}

function countTicks(instances) {
  const ticks = new Map();
  for (const { output } of instances) {
    for (const [, job, time] of output.matchAll(/^(report|witness) (\d+)$/gm)) {
      const tick = tickAt(Number(time));
      const counts = ticks.get(tick) ?? { tick, report: 0, witness: 0 };
      counts[job] += 1;
      ticks.set(tick, counts);
    }
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
  for (const { tick, report, witness } of ticks) {
    ok(report <= 1, `tick ${tick} ran ${report} times`);
    // If a busy machine keeps a quorum from answering in time, that is an outage, and nothing runs.
    const ran = report === 1 || witness < 3 || tick < first || output.includes('cannot be decided on now');
    ok(ran, `tick ${tick} came to three instances and did not run:\n${output}`);
  }
}
