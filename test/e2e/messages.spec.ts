import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type INestApplicationContext,
  Injectable,
  type NestInterceptor,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import { type ClientProxy, EventPattern, MessagePattern, Payload, RpcException } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { type Lock, LockExceptionFilter, LockInterceptor, LockService, WithLock } from 'nestjs-redlock';
import { firstValueFrom, lastValueFrom, merge, Observable, Subject, take, toArray } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { boot, externally, logs } from './support/applications.js';
import { type Deferred, deferred, settle } from './support/deferred.js';
import { LocksPerTest } from './support/locks.js';
import { type SocketClient, startGateway, startMicroservice } from './support/messages.js';
import { throwing } from '../support/throwing.js';

const locks = new LocksPerTest(3);
let values: Subject<unknown>;
let seen: Deferred<boolean>;
let giveUp: Subject<unknown>;
let work: Deferred;

beforeEach(() => {
  [values, seen, giveUp, work] = [new Subject(), deferred(), new Subject(), deferred()];
});

/** Gives up when the test decides, as an interceptor with a time limit does. */
const TimeLimit: NestInterceptor = {
  intercept: (_, next) => merge(next.handle(), giveUp).pipe(take(1)),
};

/** After the release, the handler of a caller that has left neither runs nor logs anything but that the call waited. */
async function expectNothingRuns(lock: Lock): Promise<void> {
  await lock.release();
  await settle();
  expect(logs).toEqual([expect.stringContaining('debug a call waits for')]);
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

    @EventPattern('event')
    async event(@Payload() _: string): Promise<void> {
      await Promise.resolve();
      seen.resolve(locks.held);
    }
  }

  let client: ClientProxy;
  let service: LockService;

  beforeEach(async () => {
    const started = await startMicroservice({ imports: [locks.module()], controllers: [Stock] });
    client = started.client;
    service = started.app.get(LockService);
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
    await locks.clock.advance(30_000);
    expect(locks.held).toBe(true);
    values.next(2);
    values.complete();
    await expect(received).resolves.toEqual([1, 2]);
  });

  it('ends an Observable with an error when the lock is lost', async () => {
    const received = lastValueFrom(client.send('values', 'pen')).catch((error: unknown) => error);
    await eventually(() => values.observed);
    values.next(1);
    await locks.lose();
    expect(values.observed).toBe(false);
    expect(await received).toMatchObject({ status: 'error' });
  });

  it('stops waiting when the caller gives up, runs nothing, and logs only that it waited', async () => {
    const lock = await service.acquire('pen', '30s');
    logs.length = 0;
    const received = lastValueFrom(client.send('limited', 'pen')).catch((error: unknown) => error);
    // The first of the two timers belongs to the lock that is held.
    await eventually(() => locks.clock.pendingTimers > 1);
    giveUp.error(new RpcException('too late'));
    expect(await received).toMatchObject({ message: 'too late' });
    await eventually(() => locks.clock.pendingTimers === 1);
    await expectNothingRuns(lock);
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
        return throwing(new Error('teardown'));
      });
    }
  }

  let client: SocketClient;
  let service: LockService;

  beforeEach(async () => {
    const started = await startGateway({ imports: [locks.module()], providers: [Rooms] });
    client = started.client;
    service = started.app.get(LockService);
  });
  afterEach(() => client.close());

  it('locks a handler that returns a promise', async () => {
    client.send('value', 'a');
    expect(await client.receive()).toEqual({ event: 'value', data: true });
  });

  it('stops waiting when the client disconnects, runs nothing, and logs only that it waited', async () => {
    const lock = await service.acquire('room:a', '30s');
    logs.length = 0;
    client.send('waiting', 'a');
    await eventually(() => locks.clock.pendingTimers > 1);
    await client.terminate();
    await eventually(() => locks.clock.pendingTimers === 1);
    await expectNothingRuns(lock);
  });

  it('unsubscribes from an undeclared Observable without values when the client disconnects', async () => {
    client.send('undeclared', 'a');
    await eventually(() => values.observed);
    await client.terminate();
    await eventually(() => !locks.held);
    expect(values.observed).toBe(false);
  });

  it('releases the lock although the teardown of an Observable throws, and logs the error', async () => {
    client.send('broken', 'a');
    await seen.promise;
    expect(locks.held).toBe(true);
    logs.length = 0;
    await client.terminate();
    await eventually(() => !locks.held);
    expect(logs).toEqual([expect.stringMatching(/^error .*teardown/s)]);
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
    await expect(externally(app, app.get(Jobs), type)('7')).resolves.toEqual({ id: '7', locked: true });
  });
});

describe('LockExceptionFilter for other protocols than HTTP', () => {
  const DETAILS = { code: 'LOCK_NOT_ACQUIRED', retryAfter: expect.any(Number) };
  const FAILURE = { status: 'error', message: 'Locked', ...DETAILS };

  let held: Lock;
  afterEach(() => held.release());

  /** Acquires the resource outside of all messages. */
  async function hold(app: INestApplicationContext): Promise<void> {
    held = await app.get(LockService).acquire('order', 8_200);
    logs.length = 0;
  }

  const expectDebugOnly = () => expect(logs).toEqual([expect.stringMatching(/^debug "order" is held/)]);

  it('answers a microservice without an error in the log', async () => {
    @Controller()
    @UseFilters(LockExceptionFilter)
    class Messages {
      @MessagePattern('order')
      @WithLock('order', { wait: 0 })
      async order(): Promise<string> {
        return 'done';
      }
    }
    const { app, client } = await startMicroservice({ imports: [locks.module()], controllers: [Messages] });
    await hold(app);
    await expect(lastValueFrom(client.send('order', ''))).rejects.toEqual(FAILURE);
    expectDebugOnly();
    await client.close();
  });

  it('answers a WebSocket with the event of Nest', async () => {
    @WebSocketGateway()
    @UseFilters(LockExceptionFilter)
    class Rooms {
      @SubscribeMessage('order')
      @WithLock('order', { wait: 0 })
      async order(): Promise<string> {
        return 'done';
      }
    }
    const { app, client } = await startGateway({ imports: [locks.module()], providers: [Rooms] });
    await hold(app);
    client.send('order', 7);
    expect(await client.receive()).toEqual({
      event: 'exception',
      data: { ...FAILURE, cause: { pattern: 'order', data: 7 } },
    });
    expectDebugOnly();
    await client.close();
  });

  it.each([
    ['graphql', { name: 'Error', message: 'Locked', extensions: DETAILS }],
    ['queue', { name: 'LockNotAcquiredError' }],
    // By default Nest calls such a context HTTP, although there is no response.
    ['http', { name: 'LockNotAcquiredError' }],
  ])('fails a handler of the type %s that another package runs', async (type, error) => {
    @Injectable()
    @UseFilters(LockExceptionFilter)
    class Jobs {
      @WithLock('order', { wait: 0 })
      async run(): Promise<string> {
        return 'done';
      }
    }
    const app = await boot({ imports: [locks.module()], providers: [Jobs] });
    await hold(app);
    await expect(externally(app, app.get(Jobs), type)()).rejects.toMatchObject(error);
    expectDebugOnly();
  });
});
