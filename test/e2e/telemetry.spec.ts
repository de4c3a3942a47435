import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable } from '@nestjs/common';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { LockService, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import { openTelemetry } from 'nestjs-redlock/opentelemetry';
import { memoryMasters } from 'nestjs-redlock/testing';
import { Telemetry } from '../support/telemetry.js';
import { boot, closeAll, logs } from './support/applications.js';

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
afterEach(closeAll);

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

describe('Spans of a locked method', () => {
  it('belong to the caller, and spans of the method belong to the hold', async () => {
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
});

describe('A refusal that is expected', () => {
  it('is a skip for a decorator with onLocked: skip and for tryAcquire, but not for any other call', async () => {
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
});

describe('Metrics and spans', () => {
  it('say which acquisitions are for a shared lock or a permit, and nothing more about exclusive ones', async () => {
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
      await expect(start()).rejects.toMatchObject({ name: 'RedlockConfigError', option: 'observers' });
    }
  });

  it('logs what an observer throws, without any other effect', async () => {
    const broken = (): never => {
      throw new Error('no more disk');
    };
    options = { ...options, observers: [{ acquiring: broken }, ...(options.observers ?? [])] };
    const reports = await start();
    await expect(reports.daily()).resolves.toEqual(expect.any(String));
    expect(logs).toContain('error an observer of locks threw: Error: no more disk');
    expect(await outcomes()).toEqual([['granted', 1]]);
  });
});
