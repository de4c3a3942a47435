import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { LockService, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { Telemetry } from '../support/telemetry.js';
import { boot, logs } from './support/applications.js';
import { Locks } from './support/locks.js';
import { CronExpression, ScheduleModule } from '@nestjs/schedule';
import type { TestingModule } from '@nestjs/testing';
import { LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { command } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { sharedMasters } from '../integration/support/shared-masters.js';

jest.setTimeout(60_000);

describe('The telemetry of an application', () => {
  let telemetry: Telemetry;
  let options: RedlockModuleOptions;

  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  });
  afterAll(() => context.disable());

  beforeEach(() => {
    telemetry = new Telemetry();
    const { tracerProvider, meterProvider } = telemetry;
    options = { masters: memoryMasters(3), observers: [openTelemetry({ tracerProvider, meterProvider })] };
  });

  @Injectable()
  class Reports {
    constructor(@Inject(LockService) readonly locks: LockService) {}

    @WithLock('report:daily', { ttl: '5s', onLocked: 'skip' })
    async daily(): Promise<string | undefined> {
      const tracer = telemetry.tracerProvider.getTracer('test');
      const query = tracer.startSpan('query');
      query.end();
      return trace.getActiveSpan()?.spanContext().spanId;
    }
  }

  async function start(): Promise<Reports> {
    const app = await boot({ imports: [RedlockModule.forRoot(options)], providers: [Reports] });
    return app.get(Reports);
  }

  const spanCalled = (name: string) => telemetry.spans.find((span) => span.name === name)!;

  const outcomes = async (): Promise<unknown[]> =>
    (await telemetry.points('redlock.acquire.duration')).map(({ attributes, value }) => [
      attributes['redlock.outcome'],
      value,
    ]);

  it('Spans of a locked method belong to the caller, and spans of the method belong to the hold', async () => {
    const reports = await start();
    const request = telemetry.tracerProvider.getTracer('test').startSpan('request');
    const active = await context.with(trace.setSpan(context.active(), request), () => reports.daily());
    const [acquire, hold, query] = ['redlock.acquire', 'redlock.hold', 'query'].map(spanCalled);
    expect(acquire!.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
    expect(hold!.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
    expect(query!.parentSpanContext?.spanId).toBe(hold!.spanContext().spanId);
    expect(active).toBe(hold!.spanContext().spanId);
    expect(hold!.attributes).toEqual({
      'redlock.service': 'default',
      'redlock.resource': 'report:*',
      'redlock.outcome': 'released',
    });
  });

  it('A refusal that is expected is a skip for a decorator with onLocked: skip and for tryAcquire, but not for any other call', async () => {
    const reports = await start();
    await using _ = await reports.locks.acquire('report:daily');
    await expect(reports.daily()).resolves.toBeUndefined();
    await expect(reports.locks.tryAcquire('report:daily')).resolves.toBeNull();
    await expect(reports.locks.acquire('report:daily', { ttl: '5s', wait: 0 })).rejects.toThrow(/held by .* since/);
    expect(await outcomes()).toEqual([
      ['granted', 1],
      ['skipped', 2],
      ['held', 1],
    ]);
  });

  it('Metrics and spans say which acquisitions are for a shared lock or a permit, and nothing more about exclusive ones', async () => {
    const { locks } = await start();
    await locks.withLock('a', { mode: 'shared' }, () => undefined);
    await locks.withLock('b', { permits: 2 }, () => undefined);
    await locks.withLock('c', () => undefined);
    const kinds = ['shared', 'permit', undefined];
    const pointsOf = async (name: string): Promise<unknown[]> =>
      (await telemetry.points(name)).map(({ attributes }) => attributes['redlock.kind']);
    expect(await pointsOf('redlock.acquire.duration')).toEqual(kinds);
    expect(await pointsOf('redlock.hold.duration')).toEqual(kinds);
    const holds = telemetry.spans.filter(({ name }) => name === 'redlock.hold');
    expect(holds.map(({ attributes }) => attributes['redlock.kind'])).toEqual(kinds);
  });

  describe('The module option observers', () => {
    it('leaves out calls that are not locked', async () => {
      options = { ...options, enabled: false };
      const reports = await start();
      await reports.daily();
      expect(telemetry.spans.map(({ name }) => name)).toEqual(['query']);
      expect(await telemetry.metrics()).toEqual([]);
    });

    it('is checked at boot', async () => {
      for (const observers of [openTelemetry(), [undefined], 'log', null]) {
        options = { ...options, observers: observers as never };
        await expect(start()).rejects.toMatchObject({
          name: 'RedlockConfigError',
          option: expect.stringMatching('^observers'),
        });
      }
    });
  });
});

describe('The metrics of the jobs of several instances', () => {
  const START = Date.UTC(2026, 2, 29, 0, 0, 30);
  const MINUTE = 60_000;
  const TICK = START + MINUTE / 2;

  @Injectable()
  class Reports {
    @LockedCron(CronExpression.EVERY_MINUTE, { name: 'report' })
    async report(): Promise<void> {}
  }

  /** Instances that share their masters and their clock, each with metrics of its own. */
  class Cluster {
    readonly clock = new ManualClock(START);
    private readonly locks = new Locks(3, { clock: this.clock });

    async start(telemetry: Telemetry): Promise<TestingModule> {
      const broken = { jobs: { started: () => Promise.reject(new Error('no room')) } };
      const app = await boot({
        imports: [
          this.locks.module({ observers: [broken, openTelemetry({ meterProvider: telemetry.meterProvider })] }),
          ...[ScheduleModule.forRoot(), RedlockScheduleModule],
        ],
        providers: [Reports],
      });
      await this.clock.settle();
      return app;
    }
  }

  const sumOf = async (telemetry: Telemetry, name: string): Promise<number> =>
    (await telemetry.points(name)).reduce((sum, { value }) => sum + value, 0);

  it('show one run, a skip on the other instance, and the same last success on all, also after a restart', async () => {
    const cluster = new Cluster();
    const [a, b, c] = [new Telemetry(), new Telemetry(), new Telemetry()];
    const first = await cluster.start(a);
    await cluster.start(b);
    await cluster.clock.advance(MINUTE);
    expect(await sumOf(a, 'redlock.job.runs')).toBe(1 - (await sumOf(b, 'redlock.job.runs')));
    expect(await sumOf(a, 'redlock.job.skips')).toBe(1 - (await sumOf(b, 'redlock.job.skips')));
    await cluster.start(c);
    for (const telemetry of [a, b, c]) {
      const [point, ...others] = await telemetry.points('redlock.job.last_success');
      expect(others).toEqual([]);
      expect(point?.attributes).toEqual({ 'redlock.service': 'default', 'redlock.job': 'report' });
      expect(point?.value).toBeGreaterThanOrEqual(TICK / 1_000);
      expect(point?.value).toBeLessThan(TICK / 1_000 + 1);
    }
    // An observer that fails is logged and disturbs no job.
    expect(logs.filter((line) => line.startsWith('error'))).toEqual([
      'error an observer of locks threw: Error: no room',
    ]);
    await first.close();
  });
});

describe('A master that loses its vote while the application runs', () => {
  const masters = sharedMasters(3);

  async function handshakesOf(port: number): Promise<number> {
    const stats = String(await command(port, 'INFO', 'commandstats'));
    return Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  it('is logged once with the reason, and once when it votes again', async () => {
    const [a, b] = masters.servers;
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: [...masters.urls], restartGuard: false })] });
    await command(b!.port, 'REPLICAOF', '127.0.0.1', a!.port);
    await command(b!.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const stateOf = () => app.get(LockService).status().masters[1]?.state;
    await eventually(() => stateOf() === 'refused');
    // Further connections to the same replica log nothing.
    const before = await handshakesOf(b!.port);
    await eventually(async () => (await handshakesOf(b!.port)) >= before + 2);
    await command(b!.port, 'REPLICAOF', 'NO', 'ONE');
    await eventually(() => stateOf() === 'voting');
    expect(logs.filter((line) => line.includes(`master 127.0.0.1:${b!.port} `))).toEqual([
      expect.stringMatching(/^warn master \S+ does not vote: it is a replica/),
      expect.stringMatching(/^log master \S+ votes again$/),
    ]);
  });
});
