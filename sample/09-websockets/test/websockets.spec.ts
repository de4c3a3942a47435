import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import type { RedlockModuleOptions } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { WebSocket } from 'ws';
import { closeLater, twoInstances } from '../../../test/support/instances.js';
import { AppModule } from '../src/app.module.js';
import type { Renderer } from '../src/renderer.js';

/** Two instances of the application with a client each, and work that ends when the test lets it. */
function startTwo(options: Partial<RedlockModuleOptions> = {}) {
  const locks = { masters: memoryMasters(3), ...options };
  return twoInstances((gate) => start(locks, { render: () => gate.pass() }));
}

/** Asks an instance to publish a document, and resolves with the message that the client receives. */
type Publish = (document: string) => Promise<unknown>;

async function start(locks: RedlockModuleOptions, renderer: Renderer): Promise<Publish> {
  const app = await NestFactory.create(AppModule.register(locks, renderer), { logger: false });
  closeLater(() => app.close());
  app.useWebSocketAdapter(new WsAdapter(app));
  await app.listen(0, '127.0.0.1');
  const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
  closeLater(() => socket.terminate());
  await once(socket, 'open');
  return async (document) => {
    const heard = once(socket, 'message') as Promise<[Buffer]>;
    socket.send(JSON.stringify({ event: 'publish', data: { document } }));
    return JSON.parse(String((await heard)[0])) as unknown;
  };
}

const published = (document: string): unknown => ({ event: 'published', data: { document } });

describe('A locked message handler', () => {
  it('runs once at a time, and sends the second client an error', async () => {
    const { gate, first, second } = await startTwo();
    const one = first('terms');
    await gate.arrived(1);
    await expect(second('terms')).resolves.toEqual({
      event: 'exception',
      data: {
        status: 'error',
        code: 'LOCK_NOT_ACQUIRED',
        message: 'Another request is publishing this document',
        retryAfter: expect.any(Number),
        cause: { pattern: 'publish', data: { document: 'terms' } },
      },
    });
    expect(gate.arrivals).toBe(1);
    gate.open();
    await expect(one).resolves.toEqual(published('terms'));

    const again = second('terms');
    await gate.arrived(2);
    gate.open();
    await expect(again).resolves.toEqual(published('terms'));
  });

  it('is not blocked by other documents', async () => {
    const { gate, first, second } = await startTwo();
    const both = Promise.all([first('terms'), second('prices')]);
    await gate.arrived(2);
    gate.open();
    await expect(both).resolves.toEqual([published('terms'), published('prices')]);
  });

  it('runs twice at once without the lock, so the tests above would detect a missing lock', async () => {
    const { gate, first, second } = await startTwo({ enabled: false });
    const both = Promise.all([first('terms'), second('terms')]);
    await gate.arrived(2);
    gate.open();
    await both;
    expect(gate.crowd).toBe(2);
  });
});
