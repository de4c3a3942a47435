// Which suites `npm test` leaves to the second tier, and why. Everything else is in the first.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './run.mjs';

/** Files, or beginnings of their paths, of the second tier. */
const SECOND = [
  {
    paths: ['test/browser/'],
    area: 'the dashboard in a browser',
    reason: 'it needs Chromium',
  },
  {
    paths: ['sample/05-metrics/test/prometheus.spec.ts'],
    area: 'rules and panels in Prometheus',
    reason: 'they need Prometheus',
  },
  {
    paths: ['test/simulation/mutants/', 'test/simulation/jobs/mutants.spec.ts'],
    area: 'mutants of the simulations',
    reason: 'they test tests',
  },
  {
    paths: ['test/model/', 'test/simulation/model.spec.ts'],
    area: 'models, and the comparison of the simulated server with a real one',
    reason: 'they test tests',
  },
  {
    paths: ['test/integration/torture.spec.ts', 'test/integration/leader-torture.spec.ts'],
    area: 'torture',
    reason: 'two minutes; torture-smoke.spec.ts tortures for 8 s, and its sections write with tokens',
  },
  {
    paths: ['test/soak/'],
    area: 'soak of an application',
    reason: 'a minute, and it needs PostgreSQL; test/unit/soak shows that its checks notice what they have to',
  },
  {
    paths: ['test/integration/guard-identity.spec.ts', 'test/integration/wall-clock.spec.ts'],
    area: 'servers that are restarted, replaced and promoted',
    reason: 'they wait for quarantines; guard.spec.ts, sentinel.spec.ts and the simulation have the same rules',
  },
  {
    paths: ['test/integration/sql-', 'test/sql/'],
    area: 'fenced writes on PostgreSQL and MariaDB, and with each driver',
    reason: 'they need these servers and drivers; test/unit/sql fences on SQLite',
  },
  {
    paths: ['test/unit/docs/check-docs.spec.ts'],
    area: 'wrong documents that must be noticed',
    reason: 'they test tests',
  },
  {
    paths: [
      'test/e2e/busy-process.spec.ts',
      'test/integration/guard-cost.spec.ts',
      'test/integration/waiting-fairness.spec.ts',
      'test/integration/waiting-faults.spec.ts',
    ],
    area: 'busy processes, crowds of waiters and jobs, and what the guard costs',
    reason:
      'they need a quiet processor; time-limit.spec.ts, waiting.spec.ts, schedule.spec.ts and guard.spec.ts have the same rules',
  },
  {
    paths: ['test/e2e/lost-masters.spec.ts'],
    area: 'applications with lost or refusing masters',
    reason: 'they wait; refusals.spec.ts and boot.spec.ts have the short ways',
  },
  {
    paths: ['sample/02-schedule/test/processes.spec.ts', 'sample/10-leader/test/processes.spec.ts'],
    area: 'processes of the samples with jobs and a leader',
    reason: 'they wait for a job that is due every ten seconds, and for locks of crashed processes',
  },
];

/** Suites of test/e2e that run on Nest 11 in the first tier; in the second, the others follow. */
export const NEST_11_SMOKE = ['test/e2e/hosts.spec.ts', 'test/e2e/module.spec.ts'];

/** Suites that run in both tiers. */
const BOTH = [
  // Only the second makes all runs of their properties and simulations, and all of their load.
  'test/integration/bounds.spec.ts',
  'test/integration/fencing.spec.ts',
  'test/simulation/busy.spec.ts',
  'test/simulation/jobs/jobs.spec.ts',
  'test/simulation/simulation.spec.ts',
  'test/unit/settings/resources.spec.ts',
  'test/unit/settings/settings.spec.ts',
  'test/unit/nest/nested-calls.spec.ts',
  'test/unit/schedule/cron-schedule.spec.ts',
];

/** What the first tier leaves out, as lines. */
export const LEFT_OUT = [
  ...SECOND.map(({ area, reason }) => `${area}: ${reason}`),
  `applications on Nest 11, except ${NEST_11_SMOKE.join(' and ')}: they run on Nest 12`,
  'three quarters of long loads, and of the runs of simulations and long properties',
  'builds of the samples: their types are checked anyway',
];

/** @returns {(path: string) => boolean} whether a suite belongs to one of these tiers, 1 and 2 */
export function inTiers(tiers) {
  return (path) => {
    const isSecond = SECOND.some(({ paths }) => paths.some((each) => path.startsWith(each)));
    return tiers.includes(isSecond ? 2 : 1) || BOTH.includes(path);
  };
}

/** Paths of all suites below this folder. */
export async function suitesIn(folder) {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const found = entries.map((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : suitesIn(path);
    return entry.name.endsWith('.spec.ts') ? [path] : [];
  });
  return (await Promise.all(found)).flat().sort();
}

/** Rejects if this file names a suite that does not exist: it may have got another name, and changed its tier. */
export async function checkNames() {
  const suites = [...(await suitesIn('test')), ...(await suitesIn('sample'))];
  const named = [...SECOND.flatMap(({ paths }) => paths), ...NEST_11_SMOKE, ...BOTH];
  const unknown = named.filter((path) => !suites.some((suite) => suite.startsWith(path)));
  if (unknown.length > 0) throw new Error(`scripts/tiers.mjs names what does not exist: ${unknown.join(', ')}`);
}
