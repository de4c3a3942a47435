import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Job, type Queue, QueueEvents } from 'bullmq';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { RedisServer } from '../../../scripts/redis-servers.mjs';
import { Gate, Refusals } from '../../../test/support/gate.js';
import { closeLater } from '../../../test/support/instances.js';
import { AppModule } from '../src/app.module.js';
import type { BillingService, Invoice } from '../src/billing.service.js';
import { QUEUE } from '../src/queue.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(async () => {
  await server.stop();
});

/** Starts two workers with a billing system that answers when the test lets it. */
async function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const gates = { anna: new Gate(), bert: new Gate() };
  const refusals = new Refusals();
  const billing: BillingService = { charge: ({ customer }) => gates[customer as keyof typeof gates].pass() };
  const locks = { masters: memoryMasters(3), observers: [refusals], ...options };
  const apps: INestApplicationContext[] = [];
  for (let i = 0; i < 2; i++) {
    const module = AppModule.register(server.url, locks, billing);
    const app = await NestFactory.createApplicationContext(module, { logger: false });
    apps.push(app);
    closeLater(() => app.close());
  }
  const queue = apps[0]!.get<Queue<Invoice>>(getQueueToken(QUEUE));
  const events = new QueueEvents(QUEUE, { connection: { url: server.url } });
  closeLater(() => events.close());
  closeLater(() => Object.values(gates).forEach((gate) => gate.stayOpen()));
  await events.waitUntilReady();
  const add = (customer: string): Promise<Job<Invoice>> => queue.add('charge', { customer, amount: 1 });
  const completed = (job: Job<Invoice>): Promise<unknown> => job.waitUntilFinished(events, 15_000);
  return { gates, refusals, queue, events, add, completed };
}

describe('Jobs of one customer on two workers with four slots each', () => {
  it('run one after the other, and do not delay the jobs of other customers', async () => {
    const { gates, refusals, queue, add, completed } = await startTwo();
    const first = await add('anna');
    await gates.anna.arrived(1);
    const refused = refusals.next();
    const second = await add('anna');
    await refused;
    const other = await add('bert');
    await gates.bert.arrived(1);
    gates.bert.open();
    await completed(other);
    expect(gates.anna.arrivals).toBe(1);

    gates.anna.open();
    await completed(first);
    await gates.anna.arrived(2);
    gates.anna.open();
    await completed(second);
    expect(gates.anna.crowd).toBe(1);

    const delayed = await queue.getJob(second.id!);
    // The job was started more than once, and only the last attempt counts.
    expect(delayed?.attemptsStarted).toBeGreaterThan(1);
    expect(delayed?.attemptsMade).toBe(1);
    expect(delayed?.failedReason).toBeUndefined();
  });

  it('use up no attempt in an outage of the masters, and run after it', async () => {
    const masters = memoryMasters(3);
    const { gates, queue, events, add, completed } = await startTwo({ masters });
    for (const master of masters) master.takeDown();
    const delayed = once(events, 'delayed');
    const job = await add('anna');
    await delayed;
    for (const master of masters) master.bringUp();
    await gates.anna.arrived(1);
    gates.anna.open();
    await completed(job);
    const ended = await queue.getJob(job.id!);
    expect([ended?.attemptsMade, ended?.failedReason]).toEqual([1, undefined]);
    expect(ended?.attemptsStarted).toBeGreaterThan(1);
  });

  it('run together without the lock, so the test above would detect a missing lock', async () => {
    const { gates, add, completed } = await startTwo({ enabled: false });
    const jobs = [await add('anna'), await add('anna')];
    await gates.anna.arrived(2);
    gates.anna.open();
    await Promise.all(jobs.map(completed));
    expect(gates.anna.crowd).toBe(2);
  });
});
