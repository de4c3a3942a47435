import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nestjs-redlock';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { eventually } from '../../../test/support/eventually.js';
import { Gate } from '../../../test/support/gate.js';
import { AppModule } from '../src/app.module.js';
import { CALLS_AT_A_TIME } from '../src/labels.controller.js';
import { PriceStore } from '../src/price.store.js';

/** A store that stops where the test looks at it. */
class WatchedPrices extends PriceStore {
  readonly reading = new Gate();
  readonly replacing = new Gate();

  override async read(item: string): Promise<number> {
    await this.reading.pass();
    return super.read(item);
  }

  protected override betweenSteps(): Promise<void> {
    return this.replacing.pass();
  }
}

let servers: RedisServer[];
let folder: string;
let prices: WatchedPrices;
let calls: Gate;
const apps: INestApplication[] = [];

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'prices-'));
  prices = new WatchedPrices(folder);
  calls = new Gate();
});
afterEach(async () => {
  for (const gate of [calls, prices.reading, prices.replacing]) gate.stayOpen();
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await rm(folder, { recursive: true });
});

/** Starts two instances of the application. Requests go to them in turn and resolve with status and body. */
async function startTwo({ enabled = true } = {}) {
  const locks = { masters: servers.map(({ url }) => url), ttl: '2s', enabled } as const;
  const carrier = { label: (order: string) => calls.pass().then(() => `label of ${order}`) };
  const urls: string[] = [];
  for (let instance = 0; instance < 2; instance++) {
    const app = await NestFactory.create(AppModule.register(locks, prices, carrier), { logger: false });
    apps.push(app);
    await app.listen(0, '127.0.0.1');
    urls.push(await app.getUrl());
  }
  let turn = 0;
  const send = async (method: string, path: string, body?: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    const url = `${urls[turn++ % urls.length]}${path}`;
    const response = await fetch(url, { method, headers, body: body ? JSON.stringify(body) : null });
    return `${response.status} ${response.ok ? await response.text() : ''}`.trim();
  };
  return { send, locks: apps[0]!.get(LockService) };
}

describe('Calls to the carrier', () => {
  const printAll = (send: (method: string, path: string) => Promise<string>) =>
    Promise.all(Array.from({ length: 20 }, (_, order) => send('POST', `/orders/${order}/label`)));

  it('are at most five at a time, on all instances together, and all succeed', async () => {
    const { send, locks } = await startTwo();
    const printing = printAll(send);
    for (let count = CALLS_AT_A_TIME; count <= 20; count += CALLS_AT_A_TIME) {
      await calls.arrived(count);
      await expect(locks.inspectPermits('carrier', CALLS_AT_A_TIME)).resolves.toMatchObject({ taken: CALLS_AT_A_TIME });
      calls.open();
    }
    expect((await printing).sort()).toEqual(Array.from({ length: 20 }, (_, order) => `201 label of ${order}`).sort());
    expect(calls.crowd).toBe(CALLS_AT_A_TIME);
  });

  it('are too many without locks, so the test above would detect missing permits', async () => {
    const { send } = await startTwo({ enabled: false });
    const printing = printAll(send);
    await calls.arrived(20);
    calls.stayOpen();
    await printing;
    expect(calls.crowd).toBe(20);
  });
});

describe('Prices', () => {
  it('are read by many at the same time, and not while they are replaced', async () => {
    const { send, locks } = await startTwo();
    const filling = send('PUT', '/prices', { tea: 3, milk: 1 });
    await prices.replacing.arrived(1);
    prices.replacing.open();
    expect(await filling).toBe('200');

    const totals = [send('GET', '/prices/tea/total'), send('GET', '/prices/milk/total')];
    await prices.reading.arrived(2);
    await expect(locks.inspect('prices')).resolves.toMatchObject({ state: 'held', sharedBy: 2 });
    const replacing = send('PUT', '/prices', { tea: 5, milk: 2 });
    prices.reading.open();
    expect(await Promise.all(totals)).toEqual(['200 3', '200 1']);

    await prices.replacing.arrived(2);
    prices.reading.stayOpen();
    const during = send('GET', '/prices/tea,milk/total');
    // The request goes to the other instance, which waits in line on the masters.
    await eventually(async () => (await locks.inspect('prices')).waiting === 1);
    await expect(locks.inspect('prices')).resolves.toMatchObject({ state: 'held', sharedBy: undefined });
    prices.replacing.open();
    expect([await replacing, await during]).toEqual(['200', '200 7']);
  });

  it('are incomplete without locks, so the test above would detect a missing lock', async () => {
    const { send } = await startTwo({ enabled: false });
    prices.reading.stayOpen();
    const replacing = send('PUT', '/prices', { tea: 5, milk: 2 });
    await prices.replacing.arrived(1);
    expect(await send('GET', '/prices/tea,milk/total')).toBe('404');
    prices.replacing.open();
    expect(await replacing).toBe('200');
  });
});
