import { afterEach, describe, expect, it } from '@jest/globals';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeAll, ship, start } from './support/application.js';
import { queriesOf, readAlerts, readDashboard } from './support/monitoring.js';
import { Prometheus, programs, promtool, until } from './support/prometheus.js';
import { causeEverything } from './support/traffic.js';

if (!programs) console.log('No Prometheus on this machine: rules and panels are not run');
const withPrometheus = programs ? describe : describe.skip;

afterEach(closeAll);

withPrometheus('promtool', () => {
  it.each([
    ['accepts the configuration and the rules', ['check', 'config', 'prometheus.yml']],
    ['finds that each alert fires when it should, and not otherwise', ['test', 'rules', 'alerts.test.yml']],
  ])('%s', async (_, args) => {
    await expect(promtool(programs!.promtool, ...args)).resolves.toContain('SUCCESS');
  });
});

interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

withPrometheus('A Prometheus server that scrapes the application', () => {
  it('has an answer for each panel, evaluates each alert, and sees the quorum that is lost', async () => {
    const masters = memoryMasters(3);
    const running = await start({ masters });
    await using server = await Prometheus.start(programs!.prometheus, running.url);
    const isScraped = async (): Promise<boolean> => (await server.query('redlock_quorum_available == 1')).length > 0;
    await until(isScraped, () => 'the first scrape');
    await causeEverything(running, masters);

    // A rate needs two scrapes of a series.
    const empty = new Set(queriesOf(await readDashboard()).map(({ expression }) => expression));
    const areAnswered = async (): Promise<boolean> => {
      await Promise.all([ship(running.url, '1'), ship(running.url, '1')]);
      for (const expression of empty) if ((await server.query(expression)).length > 0) empty.delete(expression);
      return empty.size === 0;
    };
    await until(areAnswered, () => `no answer for ${[...empty].join('\n')}`);

    const rulesOf = async (): Promise<readonly Rule[]> => {
      const { groups } = await server.get<{ groups: { rules: Rule[] }[] }>('/api/v1/rules');
      return groups.flatMap(({ rules }) => rules);
    };
    const areEvaluated = async (): Promise<boolean> => (await rulesOf()).every(({ health }) => health !== 'unknown');
    await until(areEvaluated, () => 'the evaluation of all alerts');
    const names = (await readAlerts()).map(({ title }) => title);
    expect((await rulesOf()).map(({ name, health, lastError }) => [name, health, lastError ?? ''])).toEqual(
      names.map((name) => [name, 'ok', '']),
    );

    for (const master of masters.slice(1)) master.takeDown();
    const alertsOf = async (): Promise<string[]> => {
      const { alerts } = await server.get<{ alerts: { labels: { alertname: string }; state: string }[] }>(
        '/api/v1/alerts',
      );
      return alerts.map(({ labels, state }) => `${labels.alertname} ${state}`);
    };
    const isNoticed = async (): Promise<boolean> => (await alertsOf()).includes('RedlockQuorumLost pending');
    await until(isNoticed, () => 'an alert about the quorum');
    const alerts = await alertsOf();
    expect(alerts.filter((alert) => alert === 'RedlockMasterMissing pending')).toHaveLength(2);
    expect(alerts).toContain('RedlockLockLost firing');
    expect(alerts).toContain('RedlockLockInDanger firing');
  }, 60_000);
});
