import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Injectable, type NestInterceptor, UseInterceptors } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Payload,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { type Lock, LockInterceptor, LockService } from 'nestjs-redlock';
import { ManualClock } from 'nestjs-redlock/testing';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { firstValueFrom, lastValueFrom, merge, Observable, Subject, take, toArray } from 'rxjs';
import { WebSocket } from 'ws';
import { eventually } from '../support/eventually.js';
import { boot, closeAll, closeLater, compile, listen, logs } from './support/applications.js';
import { type Deferred, deferred, settle } from './support/deferred.js';
import { Locks } from './support/locks.js';

const OPTIONS: MicroserviceOptions = { transport: Transport.TCP, options: { port: 0, host: '127.0.0.1' } };

let clock: ManualClock;
let locks: Locks;
let values: Subject<unknown>;
let seen: Deferred<boolean>;
let giveUp: Subject<unknown>;
let work: Deferred;

beforeEach(() => {
  clock = new ManualClock();
  locks = new Locks(3, { clock });
  [values, seen, giveUp, work] = [new Subject(), deferred(), new Subject(), deferred()];
});
afterEach(async () => {
  await closeAll();
  await locks.expectNothingLeft();
  expect(clock.pendingTimers).toBe(0);
});

/** Gives up when the test decides, as an interceptor with a time limit does. */
const TimeLimit: NestInterceptor = {
  intercept: (_, next) => merge(next.handle(), giveUp).pipe(take(1)),
};

async function lose(): Promise<void> {
  locks.masters.forEach((master) => master.pause());
  await clock.advance(10_000);
  locks.masters.forEach((master) => master.resume());
  locks.masters.forEach((master) => master.flush());
}

/** After the release, the handler of a caller that has left neither runs nor logs anything. */
async function expectNothingRuns(lock: Lock): Promise<void> {
  await lock.release();
  await settle();
  expect(logs).toEqual([]);
  expect(locks.held).toBe(false);
  expect(await Promise.race([seen.promise, Promise.resolve('not run')])).toBe('not run');
}

describe('LockInterceptor on messages of a microservice', () => {
  @Controller()
  @UseInterceptors(
    LockInterceptor((context) => `item:${context.switchToRpc().getData<string>()}`, { ttl: '10s', wait: 0 }),
  )
  class Stock {
    @MessagePattern('value')
    async value(@Payload() item: string): Promise<unknown> {
      await Promise.resolve();
      return { item, locked: locks.held };
    }

    @MessagePattern('values')
    values(): Observable<unknown> {
      return values;
    }

    @MessagePattern('limited')
    @UseInterceptors(TimeLimit, LockInterceptor((context) => context.switchToRpc().getData<string>(), '10s'))
    async limited(): Promise<void> {
      seen.resolve(true);
      await work.promise;
    }

    @MessagePattern('limited-values')
    @UseInterceptors(TimeLimit, LockInterceptor((context) => context.switchToRpc().getData<string>(), '10s'))
    limitedValues(): Observable<unknown> {
      return values;
    }

    @MessagePattern('error')
    async error(): Promise<void> {
      await Promise.resolve();
      throw new RpcException('sold out');
    }

    @EventPattern('event')
    async event(@Payload() _: string): Promise<void> {
      await Promise.resolve();
      seen.resolve(locks.held);
    }
  }

  let client: ClientProxy;
  let service: LockService;

  beforeEach(async () => {
    const module = await compile({ imports: [locks.module()], controllers: [Stock] });
    const app = closeLater(module.createNestApplication());
    const server = app.connectMicroservice<MicroserviceOptions>(OPTIONS);
    await app.startAllMicroservices();
    await app.init();
    service = app.get(LockService);
    const { port } = server.unwrap<Server>().address() as AddressInfo;
    client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: '127.0.0.1' } });
  });
  afterEach(async () => {
    await client.close();
  });

  it('locks a handler that returns a promise', async () => {
    await expect(firstValueFrom(client.send('value', 'pen'))).resolves.toEqual({ item: 'pen', locked: true });
  });

  it('keeps the lock until an Observable completes, and forwards all of its values', async () => {
    const received = lastValueFrom(client.send('values', 'pen').pipe(toArray()));
    await eventually(() => values.observed);
    values.next(1);
    await clock.advance(30_000);
    expect(locks.held).toBe(true);
    values.next(2);
    values.complete();
    await expect(received).resolves.toEqual([1, 2]);
  });

  it('ends an Observable with an error when the lock is lost', async () => {
    const received = lastValueFrom(client.send('values', 'pen')).catch((error: unknown) => error);
    await eventually(() => values.observed);
    values.next(1);
    await lose();
    expect(values.observed).toBe(false);
    expect(await received).toMatchObject({ status: 'error' });
  });

  it('passes on the error of a handler unchanged', async () => {
    await expect(lastValueFrom(client.send('error', 'pen'))).rejects.toMatchObject({ message: 'sold out' });
  });

  it('fails a message whose resource is held', async () => {
    await using _ = await service.acquire('item:pen');
    await expect(lastValueFrom(client.send('value', 'pen'))).rejects.toMatchObject({ status: 'error' });
  });

  it('stops waiting when the caller gives up, runs nothing, and logs nothing', async () => {
    const lock = await service.acquire('pen', '30s');
    logs.length = 0;
    const received = lastValueFrom(client.send('limited', 'pen')).catch((error: unknown) => error);
    // The first of the two timers belongs to the lock that is held.
    await eventually(() => clock.pendingTimers > 1);
    giveUp.error(new RpcException('too late'));
    expect(await received).toMatchObject({ message: 'too late' });
    await eventually(() => clock.pendingTimers === 1);
    await expectNothingRuns(lock);
  });

  // The class has its own lock around the time limit, and this lock ends with the message.
  const isLocked = async (resource: string) => (await service.inspect(resource)).state === 'held';

  it('unsubscribes from an Observable without values when the caller gives up, and releases the lock', async () => {
    const received = lastValueFrom(client.send('limited-values', 'pen')).catch((error: unknown) => error);
    await eventually(() => values.observed);
    expect(await isLocked('pen')).toBe(true);
    giveUp.error(new RpcException('too late'));
    expect(await received).toMatchObject({ message: 'too late' });
    expect(values.observed).toBe(false);
    await eventually(async () => !(await isLocked('pen')));
  });

  it('keeps the lock of a promise until it settles, although the caller gives up', async () => {
    const received = lastValueFrom(client.send('limited', 'pen')).catch((error: unknown) => error);
    await seen.promise;
    giveUp.error(new RpcException('too late'));
    expect(await received).toMatchObject({ message: 'too late' });
    await clock.advance(30_000);
    expect(await isLocked('pen')).toBe(true);
    work.resolve();
    await eventually(async () => !(await isLocked('pen')));
  });

  it('locks the handler of an event', async () => {
    await lastValueFrom(client.emit('event', 'pen'), { defaultValue: undefined });
    await expect(seen.promise).resolves.toBe(true);
    await eventually(() => !locks.held);
  });
});

describe('LockInterceptor on messages of a gateway', () => {
  const Locked = (wait: number) =>
    UseInterceptors(
      LockInterceptor((context) => `room:${context.switchToWs().getData<string>()}`, { ttl: '10s', wait }),
    );

  @WebSocketGateway()
  class Rooms {
    @SubscribeMessage('value')
    @Locked(0)
    async value(): Promise<unknown> {
      await Promise.resolve();
      return { event: 'value', data: locks.held };
    }

    @SubscribeMessage('values')
    @Locked(0)
    values(): Observable<unknown> {
      return values;
    }

    @SubscribeMessage('waiting')
    @Locked(60_000)
    async waiting(): Promise<void> {
      seen.resolve(true);
      await work.promise;
    }

    @SubscribeMessage('undeclared')
    @Locked(0)
    undeclared(): unknown {
      return values;
    }

    @SubscribeMessage('broken')
    @Locked(0)
    broken(): Observable<unknown> {
      return new Observable(() => {
        seen.resolve(true);
        return () => {
          throw new Error('teardown');
        };
      });
    }
  }

  let socket: WebSocket;
  let service: LockService;

  beforeEach(async () => {
    const { app, url } = await listen({ imports: [locks.module()], providers: [Rooms] }, undefined, (host) =>
      host.useWebSocketAdapter(new WsAdapter(host)),
    );
    service = app.get(LockService);
    socket = new WebSocket(url.replace('http', 'ws'));
    await once(socket, 'open');
  });
  afterEach(async () => {
    if (socket.readyState === WebSocket.CLOSED) return;
    socket.close();
    await once(socket, 'close');
  });

  async function receive(): Promise<unknown> {
    const [message] = (await once(socket, 'message')) as [Buffer];
    return JSON.parse(message.toString()) as unknown;
  }

  it('locks a handler that returns a promise', async () => {
    socket.send(JSON.stringify({ event: 'value', data: 'a' }));
    expect(await receive()).toEqual({ event: 'value', data: true });
  });

  it('keeps the lock until an Observable completes', async () => {
    socket.send(JSON.stringify({ event: 'values', data: 'a' }));
    await eventually(() => values.observed);
    const first = receive();
    values.next({ event: 'n', data: 1 });
    expect(await first).toEqual({ event: 'n', data: 1 });
    await clock.advance(30_000);
    expect(locks.held).toBe(true);
    values.complete();
    await eventually(() => !locks.held);
  });

  it('stops waiting when the client disconnects, runs nothing, and logs nothing', async () => {
    const lock = await service.acquire('room:a', '30s');
    logs.length = 0;
    socket.send(JSON.stringify({ event: 'waiting', data: 'a' }));
    await eventually(() => clock.pendingTimers > 1);
    socket.terminate();
    await eventually(() => clock.pendingTimers === 1);
    await expectNothingRuns(lock);
  });

  it('unsubscribes from an Observable without values when the client disconnects, and releases the lock', async () => {
    socket.send(JSON.stringify({ event: 'values', data: 'a' }));
    await eventually(() => values.observed);
    expect(locks.held).toBe(true);
    socket.terminate();
    await eventually(() => !values.observed);
    await eventually(() => !locks.held);
  });

  it('unsubscribes from an undeclared Observable at its first value after the client has disconnected', async () => {
    socket.send(JSON.stringify({ event: 'undeclared', data: 'a' }));
    await eventually(() => values.observed);
    socket.terminate();
    await once(socket, 'close');
    await settle();
    await clock.advance(30_000);
    expect([locks.held, values.observed]).toEqual([true, true]);
    values.next({ event: 'n', data: 1 });
    expect(values.observed).toBe(false);
    await eventually(() => !locks.held);
  });

  it('releases the lock although the teardown of an Observable throws, and logs the error', async () => {
    socket.send(JSON.stringify({ event: 'broken', data: 'a' }));
    await seen.promise;
    expect(locks.held).toBe(true);
    logs.length = 0;
    socket.terminate();
    await eventually(() => !locks.held);
    expect(logs).toEqual([expect.stringMatching(/^error .*teardown/s)]);
  });

  it('keeps the lock of a promise until it settles, although the client disconnects', async () => {
    socket.send(JSON.stringify({ event: 'waiting', data: 'a' }));
    await seen.promise;
    socket.terminate();
    await once(socket, 'close');
    await settle();
    await clock.advance(30_000);
    expect(locks.held).toBe(true);
    work.resolve();
    await eventually(() => !locks.held);
  });

  it('ends an Observable without values when the lock is lost', async () => {
    socket.send(JSON.stringify({ event: 'values', data: 'a' }));
    await eventually(() => values.observed);
    await lose();
    expect(values.observed).toBe(false);
  });

  it('ends an Observable that has emitted a value when the lock is lost', async () => {
    socket.send(JSON.stringify({ event: 'values', data: 'a' }));
    await eventually(() => values.observed);
    const first = receive();
    values.next({ event: 'n', data: 1 });
    await first;
    await lose();
    expect(values.observed).toBe(false);
  });
});

describe('LockInterceptor on a handler that another package runs through an ExternalContextCreator', () => {
  @Injectable()
  @UseInterceptors(LockInterceptor((context) => `job:${context.getArgByIndex<string>(0)}`, '10s'))
  class Jobs {
    readonly run = async (...[id]: unknown[]): Promise<unknown> => {
      await Promise.resolve();
      return { id, locked: locks.held };
    };
  }

  // By default Nest calls the context HTTP, although there is no response.
  it.each(['http', 'queue'])('locks the handler in a context of the type %s', async (type) => {
    const app = await boot({ imports: [locks.module()], providers: [Jobs] });
    const jobs = app.get(Jobs);
    const enhancers = { guards: true, interceptors: true, filters: true };
    const run = app
      .get(ExternalContextCreator)
      .create(jobs, jobs.run, 'run', undefined, undefined, undefined, undefined, enhancers, type);
    await expect(run('7')).resolves.toEqual({ id: '7', locked: true });
  });
});
