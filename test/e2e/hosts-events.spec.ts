import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Injectable } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { WithLock } from 'nestjs-redlock';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { WebSocket } from 'ws';
import { boot, closeAll, closeLater, compile, listen } from './support/applications.js';
import { deferred, settle } from './support/deferred.js';
import { Locks } from './support/locks.js';

const OPTIONS: MicroserviceOptions = {
  transport: Transport.TCP,
  options: { port: 0, host: '127.0.0.1' },
};

let locks: Locks;

beforeEach(() => {
  locks = new Locks();
});
afterEach(closeAll);

describe('@WithLock locks', () => {
  it.each(['above', 'below'])('a gateway’s message handler, %s its decorator', async (entry) => {
    @WebSocketGateway()
    class AboveGateway {
      @WithLock((order: string) => `order:${order}`)
      @SubscribeMessage('ship')
      async ship(@MessageBody() order: string): Promise<unknown> {
        return { event: 'shipped', data: { order, locked: locks.held } };
      }
    }
    @WebSocketGateway()
    class BelowGateway {
      @SubscribeMessage('ship')
      @WithLock((order: string) => `order:${order}`)
      async ship(@MessageBody() order: string): Promise<unknown> {
        return { event: 'shipped', data: { order, locked: locks.held } };
      }
    }
    const gateway = entry === 'above' ? AboveGateway : BelowGateway;
    const { url } = await listen({ imports: [locks.module()], providers: [gateway] }, undefined, (app) =>
      app.useWebSocketAdapter(new WsAdapter(app)),
    );
    const socket = new WebSocket(url.replace('http', 'ws'));
    await once(socket, 'open');
    socket.send(JSON.stringify({ event: 'ship', data: '42' }));
    const [message] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(message.toString())).toEqual({ event: 'shipped', data: { order: '42', locked: true } });
    await locks.expectNothingLeft();
    socket.close();
    await once(socket, 'close');
  });

  it('a message pattern of a microservice', async () => {
    @Controller()
    class Stock {
      @WithLock((item: string) => `stock:${item}`)
      @MessagePattern('above')
      async above(@Payload() item: string): Promise<unknown> {
        return { item, locked: locks.held };
      }

      @MessagePattern('below')
      @WithLock((item: string) => `stock:${item}`)
      async below(@Payload() item: string): Promise<unknown> {
        return { item, locked: locks.held };
      }
    }
    const module = await compile({ imports: [locks.module()], controllers: [Stock] });
    const app = closeLater(module.createNestApplication());
    const service = app.connectMicroservice(OPTIONS);
    await app.startAllMicroservices();
    const { port } = service.unwrap<Server>().address() as AddressInfo;
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: '127.0.0.1' } });
    await expect(firstValueFrom(client.send('above', 'pen'))).resolves.toEqual({ item: 'pen', locked: true });
    await expect(firstValueFrom(client.send('below', 'pen'))).resolves.toEqual({ item: 'pen', locked: true });
    await locks.expectNothingLeft();
    await client.close();
  });

  it('an event listener', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Listener {
      @WithLock((order: { id: string }) => `order:${order.id}`)
      @OnEvent('order.above')
      async above(order: { id: string }): Promise<void> {
        seen.push([order.id, locks.held]);
      }

      @OnEvent('order.below')
      @WithLock((order: { id: string }) => `order:${order.id}`)
      async below(order: { id: string }): Promise<void> {
        seen.push([order.id, locks.held]);
      }
    }
    const app = await boot({ imports: [locks.module(), EventEmitterModule.forRoot()], providers: [Listener] });
    await app.get(EventEmitter2).emitAsync('order.above', { id: 'a' });
    await app.get(EventEmitter2).emitAsync('order.below', { id: 'b' });
    expect(seen).toEqual([
      ['a', true],
      ['b', true],
    ]);
  });
});

describe.each(['first', 'last'])('@WithLock with ScheduleModule imported %s', (position) => {
  const imports = () =>
    position === 'first' ? [ScheduleModule.forRoot(), locks.module()] : [locks.module(), ScheduleModule.forRoot()];

  it('locks @Cron jobs, above and below the decorator', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Jobs {
      @WithLock('above', { ttl: '5s', onLocked: 'skip' })
      @Cron('0 0 1 1 *', { name: 'above' })
      async above(): Promise<void> {
        seen.push(['above', locks.held]);
      }

      @Cron('0 0 1 1 *', { name: 'below' })
      @WithLock('below', { ttl: '5s', onLocked: 'skip' })
      async below(): Promise<void> {
        seen.push(['below', locks.held]);
      }
    }
    const app = await boot({ imports: imports(), providers: [Jobs] });
    for (const name of ['above', 'below']) {
      await app.get(SchedulerRegistry).getCronJob(name).fireOnTick();
      await settle();
    }
    expect(seen).toEqual([
      ['above', true],
      ['below', true],
    ]);
  });

  it('locks @Interval and @Timeout', async () => {
    const [interval, timeout] = [deferred<boolean>(), deferred<boolean>()];
    @Injectable()
    class Jobs {
      @WithLock('interval')
      @Interval('interval', 1)
      async onInterval(): Promise<void> {
        interval.resolve(locks.held);
      }

      @Timeout('timeout', 1)
      @WithLock('timeout')
      async onTimeout(): Promise<void> {
        timeout.resolve(locks.held);
      }
    }
    const app = await boot({ imports: imports(), providers: [Jobs] });
    await expect(interval.promise).resolves.toBe(true);
    await expect(timeout.promise).resolves.toBe(true);
    app.get(SchedulerRegistry).deleteInterval('interval');
  });

  it('runs a job once on three instances, however late they are, with skip and minHold', async () => {
    const ran: string[] = [];
    const instance = (name: string) => {
      @Injectable()
      class Daily {
        @WithLock('daily', { ttl: '10s', onLocked: 'skip', minHold: '10s' })
        @Cron('0 0 1 1 *', { name: 'daily' })
        async report(): Promise<string | undefined> {
          ran.push(name);
          return name;
        }
      }
      return boot({ imports: imports(), providers: [Daily] });
    };
    const apps = await Promise.all(['a', 'b', 'c'].map(instance));
    const [first, ...late] = apps.map((app) => app.get(SchedulerRegistry).getCronJob('daily'));
    await first!.fireOnTick();
    await settle();
    for (const job of late) await job.fireOnTick();
    await settle();
    expect(ran).toEqual(['a']);
  });
});
