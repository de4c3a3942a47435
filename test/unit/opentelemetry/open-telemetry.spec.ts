import { describe, expect, it } from '@jest/globals';
import { SpanStatusCode } from '@opentelemetry/api';
import { openTelemetry } from '../../../lib/opentelemetry/index.js';
import type { OpenTelemetryOptions } from '../../../lib/opentelemetry/index.js';
import { type Point, Telemetry } from '../../support/telemetry.js';
import type { OnHeld } from '../../../lib/operate/observer.js';
import { type Request, Rig, type RigOptions } from '../support/rig.js';
import { type Behaviour, held, obeys, obeysAfter, only, says, unreachable } from '../support/scripted-master.js';
import { throwing } from '../../support/throwing.js';

interface Observed {
  readonly rig: Rig;
  readonly telemetry: Telemetry;
}

function observe({ masters = 3, ...options }: RigOptions = {}, telemetryOptions: OpenTelemetryOptions = {}): Observed {
  const telemetry = new Telemetry();
  const { tracerProvider, meterProvider } = telemetry;
  const observer = openTelemetry({ ...telemetryOptions, tracerProvider, meterProvider });
  return { rig: new Rig({ masters, ...options, observer }), telemetry };
}

function spansOf({ spans }: Telemetry): object[] {
  return spans.map(({ name, attributes, status }) => ({ name, ...attributes, status: status.code }));
}

function byAttribute(name: string, points: readonly Point[]): Record<string, number> {
  return Object.fromEntries<number>(points.map(({ attributes, value }) => [String(attributes[name]), value]));
}

const ORDER = { 'redlock.resource': 'order:*' };
const OK = SpanStatusCode.UNSET;
const ERROR = SpanStatusCode.ERROR;

describe('Spans', () => {
  it.each([0, 100])(
    'show in how many attempts a lock was acquired, and how it ended (held for %i ms)',
    async (held) => {
      const { rig, telemetry } = observe();
      if (held > 0) rig.scriptAll(says({ kind: 'held', remaining: undefined }));
      const waiting = await rig.outcomeAfter(held, rig.acquire('order:42', { wait: 1_000 }));
      rig.scriptAll(obeys);
      await rig.clock.advance(1_000);
      const lock = waiting.value!;
      // Each attempt has its own token, and some attempts ask only the home master.
      const requests = rig.masters.flatMap((master) => master.requests('acquire'));
      const attempts = new Set(requests.map(({ token }) => token)).size;
      expect(attempts > 1).toBe(held > 0);
      expect(spansOf(telemetry)).toEqual([
        { name: 'redlock.acquire', ...ORDER, 'redlock.outcome': 'granted', 'redlock.attempts': attempts, status: OK },
      ]);
      await lock.release();
      expect(spansOf(telemetry).slice(1)).toEqual([
        { name: 'redlock.hold', ...ORDER, 'redlock.outcome': 'released', status: OK },
      ]);
    },
  );

  it('show the cause of a loss, and nothing that names a resource', async () => {
    const { rig, telemetry } = observe();
    await rig.lock('order:42', { ttl: 1_000 });
    await rig.clock.advance(1_000);
    expect(spansOf(telemetry)[1]).toEqual({
      name: 'redlock.hold',
      ...ORDER,
      'redlock.outcome': 'lost',
      'redlock.loss.cause': 'expired',
      'error.type': 'LOCK_LOST',
      status: ERROR,
    });
    expect([telemetry.spans[1]?.events, telemetry.spans[1]?.status.message]).toEqual([[], undefined]);
  });
});

it.each<[string, Behaviour, Request & { stops?: true; onHeld?: OnHeld }, object]>([
  ['held', says(held), { wait: 500 }, { 'error.type': 'LOCK_NOT_ACQUIRED', status: ERROR }],
  ['skipped', says(held), { wait: 0, onHeld: 'skip' }, { 'error.type': 'LOCK_NOT_ACQUIRED', status: OK }],
  [
    'unavailable',
    says(unreachable),
    { wait: 0, onHeld: 'skip' },
    { 'error.type': 'QUORUM_UNAVAILABLE', status: ERROR },
  ],
  ['aborted', says(held), { wait: 5_000 }, { status: OK }],
  ['stopped', says(held), { wait: 5_000, stops: true }, { 'error.type': 'LOCK_SERVICE_STOPPED', status: ERROR }],
])('The outcome of an acquisition is %s', async (outcome, behaviour, { stops, onHeld, ...options }, rest) => {
  const { rig, telemetry } = observe();
  rig.script(2, behaviour);
  const controller = new AbortController();
  if (outcome === 'aborted') rig.clock.schedule(100, () => controller.abort(new Error('enough of order:42')));
  if (stops) rig.clock.schedule(100, () => rig.redlock.stop());
  const acquire = rig.acquire('order:42', { ...options, signal: controller.signal }, onHeld);
  expect(await rig.outcomeAfter(10_000, acquire)).toMatchObject({ state: 'rejected' });
  const attributes = { ...ORDER, 'redlock.outcome': outcome };
  expect(spansOf(telemetry)).toEqual([
    { name: 'redlock.acquire', ...attributes, 'redlock.attempts': expect.any(Number), ...rest },
  ]);
  expect(await telemetry.points('redlock.acquire.duration')).toMatchObject([{ value: 1, attributes }]);
  expect(await telemetry.points('redlock.waiters')).toEqual([{ attributes: ORDER, value: 0, sum: undefined }]);
  expect(await telemetry.points('redlock.locks.held')).toEqual([]);
});

describe('Metrics', () => {
  it('measure in seconds how long acquisitions, waits and holds took', async () => {
    const { rig, telemetry } = observe();
    rig.scriptAll(only('acquire', obeysAfter(10)));
    const first = await rig.outcomeAfter(10, rig.acquire('order:1'));
    const second = await rig.outcomeAfter(400, rig.acquire('order:1'));
    await first.value!.release();
    await rig.clock.advance(10);
    expect(second.state).toBe('fulfilled');
    await rig.clock.advance(3_000);
    await second.value!.release();

    const granted = { ...ORDER, 'redlock.outcome': 'granted' };
    const total = (points: readonly { sum: number | undefined }[]): number => points[0]!.sum!;
    const acquired = await telemetry.points('redlock.acquire.duration');
    expect(acquired).toEqual([{ attributes: granted, value: 2, sum: expect.closeTo(0.01 + 0.41, 6) }]);
    const waited = await telemetry.points('redlock.wait.duration');
    // The first one had no holder to wait for.
    expect(waited).toEqual([{ attributes: granted, value: 1, sum: expect.closeTo(0.4, 6) }]);
    const holds = await telemetry.points('redlock.hold.duration');
    expect(holds.map(({ attributes, value }) => ({ attributes, value }))).toEqual([
      { attributes: { ...ORDER, 'redlock.outcome': 'released' }, value: 2 },
    ]);
    expect(total(holds)).toBeCloseTo(0.4 + 3.01 - 0.01, 6);
  });

  it('show how many calls wait and how many locks are held', async () => {
    const { rig, telemetry } = observe();
    const lock = await rig.lock('order:1');
    const waiting = rig.follow(rig.acquire('order:1'));
    await rig.lock('cart:1');
    const now = async (name: string): Promise<Record<string, number>> =>
      byAttribute('redlock.resource', await telemetry.points(name));
    expect(await now('redlock.waiters')).toEqual({ 'order:*': 1, 'cart:*': 0 });
    expect(await now('redlock.locks.held')).toEqual({ 'order:*': 1, 'cart:*': 1 });
    await lock.release();
    await rig.clock.advance(10);
    expect(await now('redlock.waiters')).toEqual({ 'order:*': 0, 'cart:*': 0 });
    await waiting.value!.release();
    expect(await now('redlock.locks.held')).toEqual({ 'order:*': 0, 'cart:*': 1 });
  });

  it('count losses by their cause', async () => {
    const { rig, telemetry } = observe();
    await rig.lock('order:1', { ttl: 1_000 });
    await rig.lock('order:2', { ttl: 1_000 });
    await rig.lock('order:3', { ttl: 1_000, maxHold: 1_500, extend: true });
    await rig.clock.advance(2_000);
    await rig.lock('order:4', { extend: true });
    rig.scriptAll(only('extend', says(held)));
    await rig.clock.advance(10_000);
    rig.scriptAll(obeys);
    await rig.lock('order:5');
    const drained = rig.redlock.drain(0);
    await rig.clock.advance(1);
    await drained;
    const points = await telemetry.points('redlock.locks.lost');
    const causes = { expired: 2, 'max-hold': 1, 'owner-changed': 1, shutdown: 1 };
    expect(byAttribute('redlock.loss.cause', points)).toEqual(causes);
    expect(points.map(({ attributes }) => attributes['redlock.resource'])).toEqual(Array(4).fill('order:*'));
    expect(await telemetry.points('redlock.locks.held')).toEqual([{ attributes: ORDER, value: 0, sum: undefined }]);
  });

  it('count the answers of each master, and measure their latency', async () => {
    const { rig, telemetry } = observe();
    rig.masters[0]!.behaviour = obeysAfter(20);
    rig.masters[1]!.behaviour = says(unreachable);
    const lock = await rig.outcomeAfter(100, rig.acquire('order:1'));
    await rig.outcomeAfter(100, lock.value!.release());
    const answers = (await telemetry.points('redlock.master.answers')).map(({ attributes, value }) =>
      [...['master', 'operation', 'answer'].map((name) => attributes[`redlock.${name}`]), value].join(' '),
    );
    expect(answers).toEqual(
      expect.arrayContaining([
        ...['m1 acquire granted 1', 'm2 acquire unreachable 1', 'm3 acquire granted 1', 'm1 release granted 1'],
      ]),
    );
    const latencies = await telemetry.points('redlock.master.latency');
    const ofFirst = latencies.find(
      ({ attributes }) => attributes['redlock.master'] === 'm1' && attributes['redlock.operation'] === 'acquire',
    );
    expect(ofFirst).toMatchObject({ value: 1, sum: expect.closeTo(0.02, 6) });
    expect(latencies.some(({ attributes }) => attributes['redlock.master'] === 'm2')).toBe(false);
  });
});

describe('Resources', () => {
  const resourcesOf = async ({ telemetry }: Observed): Promise<unknown[]> =>
    (await telemetry.points('redlock.acquire.duration')).map(({ attributes }) => attributes['redlock.resource']);

  async function lockMany({ rig }: Observed, nameOf: (index: number) => string | string[], count = 300): Promise<void> {
    for (let i = 0; i < count; i++) await (await rig.lock(nameOf(i))).release();
  }

  it.each<[string, (index: number) => string | string[], string]>([
    ['their beginning up to the first colon, of which there are few', (i) => `job:tenant-${i}:x`, 'job:*'],
    ['nothing without a colon', (i) => `tenant-${i}`, '*'],
    [
      'each kind once and in order, if one lock is on several',
      (i) => [`order:tenant-${i}`, `account:${i}`, `account:${i + 1}`],
      'account:*,order:*',
    ],
  ])('are shown by %s', async (_, nameOf, shown) => {
    const observed = observe({ masters: 1 });
    await lockMany(observed, nameOf, 20);
    expect(await resourcesOf(observed)).toEqual([shown]);
    const { telemetry } = observed;
    const spans = telemetry.spans.map(({ name, attributes }) => ({ name, attributes }));
    expect(JSON.stringify([await telemetry.metrics(), spans])).not.toContain('tenant-');
  });

  it('are shown as a given function decides, but never as more than a hundred and one kinds', async () => {
    const observed = observe({ masters: 1 }, { resourceOf: (resource) => resource });
    await lockMany(observed, (i) => `key-${i}-${'x'.repeat(100)}`);
    const resources = await resourcesOf(observed);
    expect(resources).toHaveLength(101);
    expect(resources[0]).toBe(`key-0-${'x'.repeat(58)}`);
    expect(resources[100]).toBe('other');
  });

  it.each([
    ['throws', throwing(new Error('no name'))],
    ['returns no string', () => undefined as never],
  ])('are called other if a function %s', async (_, resourceOf) => {
    const observed = observe({ masters: 1 }, { resourceOf });
    await lockMany(observed, (i) => `key-${i}`, 2);
    expect(await resourcesOf(observed)).toEqual(['other']);
    expect(observed.rig.faults).toEqual([]);
  });
});

describe('openTelemetry()', () => {
  it('refuses unknown and invalid options', () => {
    expect(() => openTelemetry({ resourceof: String } as never)).toThrow('did you mean resourceOf?');
    expect(() => openTelemetry({ resourceOf: 'order' as never })).toThrow('resourceOf must be a function');
    expect(() => openTelemetry({ tracerProvider: null as never })).toThrow(
      'tracerProvider must be an object with the method getTracer',
    );
  });

  it('does nothing, and breaks nothing, if no SDK is registered', async () => {
    const rig = new Rig({ observer: openTelemetry() });
    const lock = await rig.lock('order:1');
    expect(lock.observed(() => lock.isHeld)()).toBe(true);
    await lock.release();
    expect(rig.faults).toEqual([]);
  });
});
