import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type Clock, type Lock, LockService } from 'nestjs-redlock';
import { ManualClock, memoryMasters } from 'nestjs-redlock/testing';
import { Gate } from '../../../test/support/gate.js';
import { AppModule } from '../src/app.module.js';
import { Payments } from '../src/payments.js';
import { StockTable } from '../src/stock.table.js';

class UnfencedTable extends StockTable {
  protected override fence(): void {}
}

let folder: string;
let masters: ReturnType<typeof memoryMasters>;
const apps: INestApplication[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inventory-'));
  masters = memoryMasters(3);
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  rmSync(folder, { recursive: true });
});

/** Starts an instance. All open one file and lock on the same masters. */
async function start({
  clock,
  charge,
  Table = StockTable,
}: Partial<Payments> & { clock?: Clock; Table?: typeof StockTable }) {
  const path = join(folder, 'stock.db');
  const locks = { masters, ttl: '1s', ...(clock && { clock }), drainTimeout: 0 } as const;
  const testing = await Test.createTestingModule({ imports: [AppModule.register(locks, path)] })
    .overrideProvider(StockTable)
    .useFactory({ factory: () => new Table(path) })
    .overrideProvider(Payments)
    .useValue({ charge: charge ?? (() => Promise.resolve()) })
    .compile();
  const app = testing.createNestApplication({ logger: false });
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  /** Resolves with the status and the count, or with the status and the message. */
  const send = async (method: string, path: string, body?: object): Promise<unknown[]> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/stock/${path}`, { method, headers, body: body ? JSON.stringify(body) : null });
    const { count, message } = (await response.json()) as { count?: number; message?: string };
    return [response.status, count ?? message];
  };
  return { app, send };
}

/** An instance sells one of ten teapots, and is paused before it writes. Meanwhile, its lock ends, and others sell three. */
async function sellLate(Table: typeof StockTable) {
  // The clock of a paused process stands still, and so do its timers: it neither extends its lock nor learns of its end.
  const [clock, payment] = [new ManualClock(), new Gate()];
  const paused = await start({ clock, charge: () => payment.pass(), Table });
  const other = await start({ Table });
  expect(await other.send('PUT', 'teapot', { count: 10 })).toEqual([200, 10]);
  const late = paused.send('POST', 'teapot/sales');
  await payment.arrived(1);
  for (const left of [9, 8, 7]) expect(await other.send('POST', 'teapot/sales')).toEqual([201, left]);
  payment.open();
  return { late: await late, left: await other.send('GET', 'teapot') };
}

describe('A sale that is paused for longer than its lock lives', () => {
  it('is refused by the database, and keeps what others have sold meanwhile', async () => {
    expect(await sellLate(StockTable)).toEqual({
      late: [409, expect.any(String)],
      left: [200, 7],
    });
  });

  it('overwrites what others have sold without the fence, so the test above would detect a missing one', async () => {
    expect(await sellLate(UnfencedTable)).toMatchObject({ left: [200, 9] });
  });
});

describe('A row under a fence', () => {
  /** A holder whose lock has ended without its knowledge, and the next one. */
  async function twoHolders(): Promise<[late: Lock, next: Lock, table: StockTable]> {
    const [late, next] = [await start({ clock: new ManualClock() }), await start({})];
    const lockOf = async ({ app }: typeof late): Promise<Lock> => {
      const lock = await app.get(LockService).acquire('stock:teapot', { wait: '1m' });
      await lock.fencingToken();
      return lock;
    };
    return [await lockOf(late), await lockOf(next), next.app.get(StockTable)];
  }

  it('accepts several transactions under one lock', async () => {
    const [, lock, table] = await twoHolders();
    table.write('teapot', 10, lock);
    expect(table.read('teapot', lock)).toBe(10);
    table.write('teapot', 9, lock);
    expect(table.look('teapot')).toBe(9);
  });

  it('refuses late reads and writes as soon as the next holder has read', async () => {
    const [late, next, table] = await twoHolders();
    table.write('teapot', 10, late);
    expect(table.read('teapot', next)).toBe(10);
    expect(() => table.write('teapot', 9, late)).toThrow(/a later holder was here/);
    expect(() => table.read('teapot', late)).toThrow(/a later holder was here/);
    expect(table.look('teapot')).toBe(10);
  });
});
