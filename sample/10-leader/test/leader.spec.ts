import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { Elections } from 'nestjs-redlock/leader';
import { memoryMasters, RedlockTestingModule } from 'nestjs-redlock/testing';
import { AppModule } from '../src/app.module.js';
import { Outbox } from '../src/outbox.js';

const masters = memoryMasters(3);
const apps: TestingModule[] = [];
let store: string;

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), 'leader-'));
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  rmSync(store, { recursive: true, force: true });
});

async function start(): Promise<TestingModule> {
  const imports = [AppModule.register({ store, locks: { masters } }), RedlockTestingModule.forRoot({ masters })];
  const app = await Test.createTestingModule({ imports }).compile();
  apps.push(await app.init());
  return app;
}

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}

it('One of two instances sends the messages, and the other one goes on when it leaves', async () => {
  const [first, second] = [await start(), await start()];
  const outbox = new Outbox(store);
  await untilTrue(() => outbox.next() > 3);
  expect([first, second].map((app) => app.get(Elections).isLeader('outbox'))).toEqual([true, false]);
  expect(new Set(outbox.sent().map(({ term }) => term)).size).toBe(1);
  await expect(second.get(Elections).leader('outbox')).resolves.toMatchObject({ data: { pid: process.pid } });

  await first.close();
  await untilTrue(() => new Set(outbox.sent().map(({ term }) => term)).size === 2);
  expect(second.get(Elections).isLeader('outbox')).toBe(true);
  expect(outbox.sent().map(({ message }) => message)).toEqual(outbox.sent().map((_, index) => index + 1));
});

it('A term that is over can send nothing', () => {
  const outbox = new Outbox(store);
  expect([outbox.send(1, 7), outbox.send(2, 8), outbox.send(3, 7), outbox.send(3, 8)]).toEqual([
    true,
    true,
    false,
    true,
  ]);
});
