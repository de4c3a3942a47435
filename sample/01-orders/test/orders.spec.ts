import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import request from 'supertest';
import { AppModule } from '../src/app.module.js';
import { type Order, OrdersTable } from '../src/orders.table.js';

const apps: INestApplication<Server>[] = [];
let table: OrdersTable;

beforeEach(() => {
  table = new OrdersTable();
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** Starts two instances of the application with one table, like replicas behind a load balancer. */
async function startTwo(options: Partial<RedlockModuleOptions> = {}): Promise<[Server, Server]> {
  const masters = memoryMasters(3);
  const start = async (): Promise<Server> => {
    const imports = [AppModule.register({ masters, ttl: '2s', ...options }, table)];
    const app = (await Test.createTestingModule({ imports }).compile()).createNestApplication<
      INestApplication<Server>
    >();
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
    apps.push(app);
    return app.getHttpServer();
  };
  return [await start(), await start()];
}

/** Sends `count` requests at once to the instances in turn. */
function atOnce<T>(
  count: number,
  servers: Server[],
  send: (server: Server, index: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => send(servers[index % servers.length]!, index)));
}

const add = (server: Server, body: object) => request(server).post('/orders/7/items').send(body);
const pay = (server: Server) => request(server).post('/orders/7/payment');
const ship = (server: Server) => request(server).post('/orders/7/shipment');

describe('Shipping an order', () => {
  async function shipTenTimes(servers: Server[]): Promise<number[]> {
    await pay(servers[0]!).expect(201);
    const responses = await atOnce(10, servers, async (server) => ship(server));
    return responses.map(({ status }) => status).sort();
  }

  it('books one parcel when several instances receive the request at once', async () => {
    const servers = await startTwo();
    await expect(shipTenTimes(servers)).resolves.toEqual([201, ...new Array<number>(9).fill(409)]);
    expect((await table.find('7')).parcel).toEqual(expect.any(String));
  });

  it('books several parcels without the lock, so the test above would detect a missing lock', async () => {
    const created = (await shipTenTimes(await startTwo({ enabled: false }))).filter((status) => status === 201);
    expect(created.length).toBeGreaterThan(1);
  });

  it('releases the order when it fails', async () => {
    const [server, other] = await startTwo();
    await ship(server).expect(409);
    await pay(other).expect(201);
    await ship(server).expect(201);
  });
});

describe('Filling an order', () => {
  async function addTwenty(servers: Server[]): Promise<number> {
    await atOnce(20, servers, async (server, index) => add(server, { sku: `sku-${index}` }).expect(201));
    return (await table.find('7')).items.length;
  }

  it('keeps every item that is added at the same time', async () => {
    await expect(addTwenty(await startTwo())).resolves.toBe(20);
  });

  it('loses items without the lock', async () => {
    await expect(addTwenty(await startTwo({ enabled: false }))).resolves.toBeLessThan(20);
  });
});

describe('Paying an order', () => {
  it('answers 423 with Retry-After to a second payment at the same time', async () => {
    const responses = await atOnce(2, await startTwo(), async (server) => pay(server));
    const [paid, refused] = responses.sort((a, b) => a.status - b.status);
    expect(paid?.status).toBe(201);
    expect(refused?.status).toBe(423);
    expect(refused?.body).toEqual({ statusCode: 423, code: 'LOCK_NOT_ACQUIRED', message: 'Locked' });
    // The remaining time of the lock, rounded up.
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(refused?.headers['retry-after'])).toBeLessThanOrEqual(2);
  });

  it('lets no item in meanwhile', async () => {
    const masters = memoryMasters(3);
    const [server, other] = await startTwo({ masters });
    const paid = pay(server)
      .expect(201)
      .then(({ body }) => body as Order);
    while (masters[0]!.size === 0) await nextTurn();
    await add(other, { sku: 'late' }).expect(409);
    await expect(paid).resolves.toMatchObject({ items: [], isPaid: true });
  });
});
