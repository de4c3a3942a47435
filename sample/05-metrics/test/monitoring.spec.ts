import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeAll, start } from './support/application.js';
import { type Sample, scrape } from './support/exposition.js';
import {
  type Dashboard,
  namesIn,
  queriesOf,
  type Query,
  readAlerts,
  readDashboard,
  readDocumented,
} from './support/monitoring.js';
import { exportJobs } from './support/jobs.js';
import { causeEverything } from './support/traffic.js';

/** Labels that Prometheus adds to what it scrapes. */
const OF_PROMETHEUS = ['instance', 'job'];

let dashboard: Dashboard;
let alerts: Query[];

beforeAll(async () => {
  dashboard = await readDashboard();
  alerts = await readAlerts();
});
afterEach(closeAll);

/** What an expression names that `/metrics` does not have. */
function missingIn(samples: readonly Sample[], { title, expression }: Query): string[] {
  const { metrics, labels } = namesIn(expression);
  expect(metrics).not.toEqual([]);
  return metrics.flatMap((metric) => {
    const series = samples.filter(({ name }) => name === metric);
    if (series.length === 0) return [`${title}: no metric ${metric}`];
    return labels
      .filter((label) => !OF_PROMETHEUS.includes(label) && !series.some((each) => label in each.labels))
      .map((label) => `${title}: no label ${label} of ${metric}`);
  });
}

describe('The names in an expression', () => {
  it('are its metrics and its labels', () => {
    const expression =
      'sum by (le, redlock_a) (rate(redlock_b_bucket{redlock_c=~"redlock_x}", job!="y"}[5m])) > redlock_d';
    expect(namesIn(expression)).toEqual({
      metrics: ['redlock_b_bucket', 'redlock_d'],
      labels: expect.arrayContaining(['le', 'redlock_a', 'redlock_c', 'job']),
    });
    expect(namesIn(expression).labels).toHaveLength(4);
  });
});

describe('Dashboard and alerts', () => {
  it('use only metrics and labels that the application has', async () => {
    const masters = memoryMasters(3);
    const running = await start({ masters });
    await causeEverything(running, masters);
    const samples = await scrape(running.url);
    const queries = [...queriesOf(dashboard), ...alerts];
    expect(queries.length).toBeGreaterThanOrEqual(20);
    expect(queries.flatMap((query) => missingIn(samples, query))).toEqual([]);
  });

  it('cover every metric of locks', async () => {
    const masters = memoryMasters(3);
    const running = await start({ masters });
    await causeEverything(running, masters);
    const names = new Set((await scrape(running.url)).map(({ name }) => name.replace(/_(?:bucket|count|sum)$/, '')));
    const used = [...queriesOf(dashboard), ...alerts].flatMap(({ expression }) => namesIn(expression).metrics);
    expect([...names].filter((name) => !used.some((each) => each.startsWith(name)))).toEqual([]);
    expect(names.size).toBeGreaterThanOrEqual(13);
  });
});

describe('The documentation', () => {
  it('alerts on metrics and labels of jobs, leaders and permits that the exporter of this sample has', async () => {
    const expressions = await readDocumented();
    expect(expressions.length).toBeGreaterThanOrEqual(2);
    await using exported = await exportJobs();
    const samples = await scrape(exported.url);
    expect(expressions.flatMap((query) => missingIn(samples, query))).toEqual([]);
  });
});

describe('The dashboard', () => {
  it('has panels that are described, do not overlap, and have queries of their own', () => {
    expect(dashboard).toMatchObject({ uid: 'redlock', schemaVersion: expect.any(Number) });
    const cells = new Set<string>();
    for (const { id, title, type, description, gridPos, targets } of dashboard.panels) {
      expect({ id, title, type, description }).toEqual({
        id: expect.any(Number),
        title: expect.stringMatching(/./),
        type: expect.stringMatching(/^(?:stat|timeseries)$/),
        description: expect.stringMatching(/\.$/),
      });
      expect(targets.map(({ refId }) => refId)).toEqual(['A', 'B'].slice(0, targets.length));
      expect(targets.length).toBeGreaterThan(0);
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = 0; x < gridPos.w; x++) {
        for (let y = 0; y < gridPos.h; y++) {
          const cell = `${gridPos.x + x},${gridPos.y + y}`;
          expect(cells.has(cell)).toBe(false);
          cells.add(cell);
        }
      }
    }
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('uses no variable that it does not define, and shows in legends only labels that its queries keep', () => {
    const defined = ['__rate_interval', ...dashboard.templating.list.map(({ name }) => name)];
    const text = JSON.stringify(dashboard).replaceAll('$__all', '');
    const used = [...text.matchAll(/\$\{?(\w+)\}?/g)].map(([, name]) => name);
    expect(new Set(used)).toEqual(new Set(defined));
    const kept = (expr: string): readonly string[] =>
      /by \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? ['instance', 'redlock_service'];
    for (const { targets } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
        expect(kept(expr)).toEqual(expect.arrayContaining(shown));
      }
    }
  });
});

describe('The alerts', () => {
  it('are about the quorum, masters, locks in danger and lost, and waiting', () => {
    expect(alerts.map(({ title }) => title)).toEqual([
      'RedlockQuorumLost',
      'RedlockMasterMissing',
      'RedlockLockLost',
      'RedlockLockInDanger',
      'RedlockWaitSlow',
    ]);
  });
});
