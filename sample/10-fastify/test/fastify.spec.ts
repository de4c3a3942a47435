import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { LockService, type RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { closeLater, twoInstances } from '../../../test/support/instances.js';
import { AppModule } from '../src/app.module.js';
import type { ExportsService } from '../src/exports.service.js';

let streams: PassThrough[];
beforeEach(() => {
  streams = [];
});

/** Two instances of the application, with exports whose rows arrive when the test writes them. */
function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const rows = (): PassThrough => {
    const stream = new PassThrough();
    stream.write('1\n');
    streams.push(stream);
    closeLater(() => stream.destroy());
    return stream;
  };
  const locks = { masters: memoryMasters(3), ...options };
  return twoInstances((gate) => start(locks, { rows, refresh: () => gate.pass() }));
}

/** One instance, as its clients see it. */
interface Instance {
  readonly locks: LockService;
  read(id: string): Promise<Response>;
  refresh(id: string): Promise<Response>;
}

async function start(options: RedlockModuleOptions, exports: ExportsService): Promise<Instance> {
  const module = AppModule.register(options, exports);
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), { logger: false });
  closeLater(() => app.close());
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return {
    locks: app.get(LockService),
    read: (id) => fetch(`${url}/exports/${id}`),
    refresh: (id) => fetch(`${url}/exports/${id}/refresh`, { method: 'POST' }),
  };
}

describe('A streamed response under LockInterceptor', () => {
  it('keeps the lock until its last row', async () => {
    const { first, second } = await startTwo();
    // The response has begun, and has not ended.
    const response = await first.read('7');
    expect(response.status).toBe(200);
    const refused = await second.read('7');
    expect(refused.status).toBe(423);
    await expect(refused.json()).resolves.toEqual({ statusCode: 423, message: 'Locked' });

    streams[0]!.end('2\n');
    await expect(response.text()).resolves.toBe('1\n2\n');
    // The end of a response reaches the client before the release reaches the masters.
    await (await second.locks.acquire('export:7')).release();
    expect((await second.read('7')).status).toBe(200);
  });

  it('is not blocked by other exports', async () => {
    const { first, second } = await startTwo();
    expect((await first.read('7')).status).toBe(200);
    expect((await second.read('8')).status).toBe(200);
  });
});

describe('A route with @WithLock', () => {
  it('answers 423 while another instance works on the export, by any route', async () => {
    const { gate, first, second } = await startTwo();
    const refreshed = first.refresh('7');
    await gate.arrived(1);
    expect((await second.refresh('7')).status).toBe(423);
    expect((await second.read('7')).status).toBe(423);
    gate.open();
    expect((await refreshed).status).toBe(204);
    expect((await second.read('7')).status).toBe(200);
    expect(gate.arrivals).toBe(1);
  });
});

describe('Without locks', () => {
  it('an export is read and refreshed at the same time, so the tests above would detect a missing lock', async () => {
    const { gate, first, second } = await startTwo({ enabled: false });
    expect((await first.read('7')).status).toBe(200);
    expect((await second.read('7')).status).toBe(200);
    const refreshed = second.refresh('7');
    await gate.arrived(1);
    gate.open();
    expect((await refreshed).status).toBe(204);
  });
});
