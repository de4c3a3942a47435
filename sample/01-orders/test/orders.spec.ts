import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import request from 'supertest';
import { AppModule } from '../src/app.module.js';
import { type Account, type Cart, Database } from '../src/database.js';

const apps: INestApplication<Server>[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** Starts instances of the application with one database, like replicas behind a load balancer. */
async function startInstances(count: number, options: Partial<RedlockModuleOptions> = {}): Promise<Server[]> {
  const database = new Database();
  const masters = memoryMasters(3);
  const started = Array.from({ length: count }, async () => {
    const testing = await Test.createTestingModule({
      imports: [AppModule.register({ masters, ...options }, database)],
    }).compile();
    const app = testing.createNestApplication<INestApplication<Server>>();
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
    apps.push(app);
    return app.getHttpServer();
  });
  return Promise.all(started);
}

/** Sends `count` requests at once, spread over the instances. */
function atOnce<T>(
  count: number,
  servers: Server[],
  send: (server: Server, index: number) => Promise<T>,
): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => send(servers[index % servers.length]!, index)));
}

describe('Shipping an order', () => {
  async function shipTenTimes(servers: Server[]): Promise<number[]> {
    await request(servers[0]!).post('/orders/7').expect(201);
    const responses = await atOnce(10, servers, async (server, index) =>
      request(server)
        .post('/orders/7/shipment')
        .send({ by: `clerk ${index}` }),
    );
    return responses.map(({ status }) => status).sort();
  }

  it('books one parcel when several instances receive the request at once', async () => {
    const servers = await startInstances(2);
    await expect(shipTenTimes(servers)).resolves.toEqual([201, ...new Array<number>(9).fill(409)]);
    const { body } = await request(servers[0]!).get('/orders/7').expect(200);
    expect(body).toMatchObject({ status: 'shipped', parcels: [{ trackingNumber: expect.any(String) }] });
  });

  it('books several parcels without the lock, so the test above would detect a missing lock', async () => {
    const servers = await startInstances(2, { enabled: false });
    const created = (await shipTenTimes(servers)).filter((status) => status === 201);
    expect(created.length).toBeGreaterThan(1);
  });

  it('releases the order when shipping fails', async () => {
    const servers = await startInstances(1);
    await request(servers[0]!).post('/orders/unknown/shipment').send({ by: 'clerk' }).expect(404);
    await request(servers[0]!).post('/orders/unknown').expect(201);
    await request(servers[0]!).post('/orders/unknown/shipment').send({ by: 'clerk' }).expect(201);
  });
});

describe('Filling a cart', () => {
  async function addTwenty(servers: Server[]): Promise<number> {
    await atOnce(20, servers, async (server, index) =>
      request(server)
        .post('/carts/anna/items')
        .send({ sku: `sku-${index}`, quantity: 1 })
        .expect(201),
    );
    const { body } = await request(servers[0]!).get('/carts/anna').expect(200);
    return (body as Cart).items.length;
  }

  it('keeps every item that is added at the same time', async () => {
    await expect(addTwenty(await startInstances(2))).resolves.toBe(20);
  });

  it('loses items without the lock', async () => {
    await expect(addTwenty(await startInstances(2, { enabled: false }))).resolves.toBeLessThan(20);
  });

  it('answers 423 with Retry-After to a second checkout while the first one is being paid', async () => {
    const servers = await startInstances(2);
    const responses = await atOnce(2, servers, async (server) => request(server).post('/carts/anna/checkout'));
    const [paid, refused] = responses.sort((a, b) => a.status - b.status);
    expect(paid?.status).toBe(201);
    expect(refused?.status).toBe(423);
    expect(refused?.body).toEqual({
      statusCode: 423,
      code: 'LOCK_NOT_ACQUIRED',
      message: 'Another request is working on this',
    });
    // The remaining time of the 5-second lock, rounded up.
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(refused?.headers['retry-after'])).toBeLessThanOrEqual(5);
  });

  it('adds nothing to a cart that is being paid', async () => {
    const masters = memoryMasters(3);
    const servers = await startInstances(2, { masters });
    const checkout = request(servers[0]!).post('/carts/anna/checkout').expect(201);
    const paid = checkout.then(({ body }) => body as Cart);
    while (masters[0]!.size === 0) await nextTurn();
    await request(servers[1]!).post('/carts/anna/items').send({ sku: 'late', quantity: 1 }).expect(409);
    await expect(paid).resolves.toEqual({ items: [], checkedOut: true });
  });

  it('refuses a quantity that is not a number, and releases the cart', async () => {
    const [server] = await startInstances(1);
    await request(server!).post('/carts/anna/items').send({ sku: 'a', quantity: 'many' }).expect(400);
    await request(server!).post('/carts/anna/items').send({ sku: 'a', quantity: 1 }).expect(201);
  });
});

describe('Transferring money', () => {
  const IDS = ['a', 'b', 'c'];
  const DIRECTIONS = [
    ['a', 'b'],
    ['b', 'a'],
    ['b', 'c'],
    ['c', 'a'],
  ];

  /** Starts with 3000 on three accounts, and resolves with the final total. */
  async function transferAround(servers: Server[]): Promise<number> {
    const [server] = servers;
    await Promise.all(
      IDS.map(async (id) => request(server!).post(`/accounts/${id}`).send({ balance: 1000 }).expect(201)),
    );
    await atOnce(24, servers, async (each, index) => {
      const [from, to] = DIRECTIONS[index % DIRECTIONS.length]!;
      return request(each)
        .post(`/accounts/${from}/transfers`)
        .send({ to, amount: index + 1 })
        .expect(204);
    });
    const accounts = await Promise.all(IDS.map(async (id) => request(server!).get(`/accounts/${id}`)));
    return accounts.reduce((sum, { body }) => sum + (body as Account).balance, 0);
  }

  it('keeps the total, and opposite transfers do not deadlock', async () => {
    await expect(transferAround(await startInstances(2))).resolves.toBe(3000);
  });

  it('changes the total without the lock', async () => {
    await expect(transferAround(await startInstances(2, { enabled: false }))).resolves.not.toBe(3000);
  });

  it('refuses an amount that exceeds the balance', async () => {
    const [server] = await startInstances(1);
    await request(server!).post('/accounts/poor/transfers').send({ to: 'rich', amount: 1 }).expect(422);
  });
});
