import { describe, expect, it } from '@jest/globals';
import { metrics } from '@opentelemetry/api';
import type { JobObserver, JobRunReport } from '../../../lib/operate/job-observer.js';
import type { LockObserver } from '../../../lib/operate/observer.js';
import { openTelemetry } from '../../../lib/opentelemetry/index.js';
import { Telemetry } from '../../support/telemetry.js';
import { Rig } from '../support/rig.js';
import { only, refused, says } from '../support/scripted-master.js';
import { statusWith } from '../support/statuses.js';

async function valuesOf(telemetry: Telemetry, name: string): Promise<unknown[]> {
  return (await telemetry.points(name)).map(({ attributes, value }) => ({ ...attributes, value }));
}

describe('The gauges', () => {
  it('report masters and quorum of a service that takes no lock, by the name of the service', async () => {
    const telemetry = new Telemetry();
    const observer = openTelemetry({ meterProvider: telemetry.meterProvider, attributes: { region: 'eu' } });
    let billing = statusWith('voting', 'voting', 'down');
    observer.started?.({ name: 'billing', status: () => billing })?.firstStatus?.(billing);
    const other = statusWith('voting');
    observer.started?.({ name: 'default', status: () => other })?.firstStatus?.(other);
    const [ofBilling, ofOther] = ['billing', 'default'].map((name) => ({ region: 'eu', 'redlock.service': name }));

    expect(await valuesOf(telemetry, 'redlock.masters.voting')).toEqual([
      { ...ofBilling, value: 2 },
      { ...ofOther, value: 1 },
    ]);
    expect(await valuesOf(telemetry, 'redlock.quorum.available')).toEqual([
      { ...ofBilling, value: 1 },
      { ...ofOther, value: 1 },
    ]);
    const states = (await valuesOf(telemetry, 'redlock.master.state')) as { value: number }[];
    expect(states).toHaveLength(20);
    expect(states.filter(({ value }) => value === 1)).toEqual([
      { ...ofBilling, 'redlock.master': 'm1', 'redlock.state': 'voting', value: 1 },
      { ...ofBilling, 'redlock.master': 'm2', 'redlock.state': 'voting', value: 1 },
      { ...ofBilling, 'redlock.master': 'm3', 'redlock.state': 'down', value: 1 },
      { ...ofOther, 'redlock.master': 'm1', 'redlock.state': 'voting', value: 1 },
    ]);

    billing = statusWith('voting', 'silent', 'down');
    expect(await valuesOf(telemetry, 'redlock.masters.voting')).toContainEqual({ ...ofBilling, value: 1 });
    expect(await valuesOf(telemetry, 'redlock.quorum.available')).toContainEqual({ ...ofBilling, value: 0 });
  });

  it('end with the service', async () => {
    const telemetry = new Telemetry();
    const status = statusWith('voting');
    let asked = 0;
    const observer = openTelemetry({ meterProvider: telemetry.meterProvider }).started?.({
      name: 'default',
      status: () => (asked++, status),
    });
    observer?.firstStatus?.(status);
    await telemetry.metrics();
    expect(asked).toBe(1);
    observer?.stopped?.();
    await telemetry.metrics();
    expect(asked).toBe(1);
  });

  it('begin with the first lock if the global provider is registered after the boot', async () => {
    const telemetry = new Telemetry();
    const status = statusWith('voting');
    const observer = openTelemetry().started?.({ name: 'default', status: () => status });
    observer?.firstStatus?.(status);
    observer?.masterQuarantined?.('m1', 'it was restarted', 1);
    metrics.setGlobalMeterProvider(telemetry.meterProvider);
    try {
      observer?.acquiring?.(['a'], 'fail', 'exclusive');
      expect(await valuesOf(telemetry, 'redlock.quorum.available')).toEqual([
        { 'redlock.service': 'default', value: 1 },
      ]);
    } finally {
      metrics.disable();
    }
  });
});

describe('The counters', () => {
  it('count each event of masters, of the quorum and of clocks', async () => {
    const telemetry = new Telemetry();
    const status = statusWith('voting');
    const observer = openTelemetry({ meterProvider: telemetry.meterProvider }).started?.({
      ...{ name: 'default', status: () => status },
    }) as Required<LockObserver>;
    observer.masterLost('m1', 'gone');
    observer.masterLost('m2', 'gone');
    observer.masterFound('m1');
    observer.masterSilent('m1');
    observer.masterAnswersAgain('m1');
    observer.masterQuarantined('m1', 'it was restarted', 1);
    observer.masterRefused('m1', 'it is a replica');
    observer.masterVotesAgain('m1');
    observer.masterAtRisk('m1', 'a risk');
    observer.quorumLost(0, 1, status);
    observer.quorumRestored(1, 1, status);
    const counted = (await telemetry.points('redlock.events')).map(({ attributes, value }) => {
      expect(attributes['redlock.service']).toBe('default');
      return [attributes['redlock.event'], attributes['redlock.master'], value];
    });
    expect(counted).toEqual([
      ['master-lost', 'm1', 1],
      ['master-lost', 'm2', 1],
      ...['found', 'silent', 'answers-again', 'quarantined', 'refused', 'votes-again', 'at-risk'].map((event) => [
        ...[`master-${event}`, 'm1', 1],
      ]),
      ...['quorum-lost', 'quorum-restored'].map((event) => [event, undefined, 1]),
    ]);
  });

  it('count a lock in danger before it is lost', async () => {
    const telemetry = new Telemetry();
    const rig = new Rig({ observer: openTelemetry({ meterProvider: telemetry.meterProvider }) });
    await rig.lock('order:1', { ttl: 9_000, extend: true });
    rig.scriptAll(only('extend', says(refused)));
    await rig.clock.advance(7_500);
    expect(await valuesOf(telemetry, 'redlock.locks.endangered')).toEqual([
      { 'redlock.resource': 'order:*', value: 1 },
    ]);
    expect(await valuesOf(telemetry, 'redlock.locks.lost')).toEqual([]);
    await rig.clock.advance(2_000);
    expect(await valuesOf(telemetry, 'redlock.locks.lost')).toMatchObject([{ value: 1 }]);
  });
});

const NOON = Date.UTC(2026, 10, 22, 12);

function run(more: Partial<JobRunReport> = {}): JobRunReport {
  return {
    ...{ scheduledFor: new Date(NOON), startedAt: new Date(NOON + 10), endedAt: new Date(NOON + 2_510) },
    ...{ instance: 'web-1:1', attempt: 1, outcome: 'ok', error: undefined, ...more },
  };
}

function observe() {
  const telemetry = new Telemetry();
  const { meterProvider } = telemetry;
  const observer = openTelemetry({ meterProvider }).started?.({ name: 'billing', status: () => statusWith('voting') });
  const jobs = observer?.jobs as Required<JobObserver>;
  const valuesOf = async (name: string): Promise<unknown[]> =>
    (await telemetry.points(name)).map(({ attributes, value }) => {
      const { 'redlock.service': service, ...rest } = attributes;
      expect(service).toBe('billing');
      return [...Object.values(rest), value];
    });
  return { telemetry, observer, jobs, valuesOf };
}

describe('The metrics of jobs', () => {
  it('count runs by their outcome and skips by their reason, and measure runs that have ended', async () => {
    const { telemetry, jobs, valuesOf } = observe();
    jobs.ended('report', run());
    jobs.ended('report', run({ outcome: 'failed' }));
    jobs.unfinished('report', { ...run(), isRunning: false }, new Error('lost'));
    expect(await valuesOf('redlock.job.runs')).toEqual([
      ['report', 'ok', 1],
      ['report', 'failed', 1],
      ['report', 'unfinished', 1],
    ]);
    const skip = { scheduledFor: new Date(NOON), at: new Date(NOON) };
    for (const reason of ['finished', 'overlap', 'finished'] as const) jobs.skipped('report', { ...skip, reason });
    expect(await valuesOf('redlock.job.skips')).toEqual([
      ['report', 'finished', 2],
      ['report', 'overlap', 1],
    ]);
    const durations = await telemetry.points('redlock.job.duration');
    expect(durations.map(({ value, sum }) => [value, sum])).toEqual([
      [1, 2.5],
      [1, 2.5],
    ]);
  });

  it('report the last success in seconds since the epoch, which never goes back, until the service ends', async () => {
    const { observer, jobs, valuesOf } = observe();
    jobs.succeeded('report', run());
    jobs.succeeded('report', run({ endedAt: new Date(NOON) }));
    jobs.succeeded('sync', run({ endedAt: new Date(NOON) }));
    const values = await valuesOf('redlock.job.last_success');
    expect(values).toEqual([
      ['report', (NOON + 2_510) / 1_000],
      ['sync', NOON / 1_000],
    ]);
    observer?.stopped?.();
    jobs.succeeded('report', run({ endedAt: new Date(NOON + 90_000) }));
    // The SDK repeats the last values of a gauge that is not observed any more.
    expect(await valuesOf('redlock.job.last_success')).toEqual(values);
  });

  it('name at most a hundred jobs, and each with at most 64 characters', async () => {
    const { jobs, valuesOf } = observe();
    for (let i = 0; i < 150; i++) jobs.ended(`job-${i}-${'x'.repeat(100)}`, run());
    const names = (await valuesOf('redlock.job.runs')).map((values) => (values as string[])[0]!);
    expect(names).toHaveLength(101);
    expect(names).toContain('other');
    expect(Math.max(...names.map(({ length }) => length))).toBe(64);
  });
});
