import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, SetMetadata, type Type, UseInterceptors } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { EventPattern } from '@nestjs/microservices';
import { Cron, Interval, Timeout } from '@nestjs/schedule';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { LockInterceptor, LockService, RedlockConfigError, WithLock } from 'nestjs-redlock';
import { memoryLockService } from 'nestjs-redlock/testing';
import { boot, closeAll } from './support/applications.js';
import { Locks } from './support/locks.js';

afterEach(closeAll);

const Locked = LockInterceptor('job');

const bootWith = (...providers: NonNullable<Parameters<typeof boot>[0]['providers']>) =>
  boot({ imports: [new Locks().module()], providers });

const refusalOf = (start: Promise<unknown>) =>
  start.then(
    () => 'booted',
    (error: unknown) => {
      expect(error).toBeInstanceOf(RedlockConfigError);
      return (error as Error).message;
    },
  );

/** The metadata that @Processor of @nestjs/bullmq sets on a class. */
const Processor = (name: string) => SetMetadata('bullmq:processor_metadata', { name });

const refusal = (where: string, caller: string, method: string) =>
  `LockInterceptor on ${where} cannot lock a method under ${caller}, for which Nest runs no interceptors: it would run ` +
  `without the lock. Write @WithLock(key, options) on the method instead, got "${method}"`;

describe('LockInterceptor on a method for which Nest runs no interceptors is refused at boot', () => {
  it.each<[string, MethodDecorator, string]>([
    ['@Cron', Cron('0 0 1 1 *'), '@Cron, @Interval or @Timeout'],
    ['@Interval', Interval(60_000), '@Cron, @Interval or @Timeout'],
    ['@Timeout', Timeout(60_000), '@Cron, @Interval or @Timeout'],
    ['@OnEvent', OnEvent('order.created'), '@OnEvent'],
    ['@Process', SetMetadata('bull:module_queue_process', {}), '@Process'],
    ['@OnWorkerEvent', SetMetadata('bullmq:worker_events_metadata', {}), '@OnWorkerEvent'],
    ['@OnQueueEvent', SetMetadata('bullmq:queue_events_metadata', {}), '@OnQueueEvent'],
  ])('%s', async (_, decorator, caller) => {
    @Injectable()
    class Above {
      @UseInterceptors(Locked)
      @decorator
      async run(): Promise<void> {}
    }
    @Injectable()
    class Below {
      @decorator
      @UseInterceptors(Locked)
      async run(): Promise<void> {}
    }
    @Injectable()
    class OnClass {
      other(): void {}

      @decorator
      async run(): Promise<void> {}
    }
    UseInterceptors(Locked)(OnClass);

    expect(await refusalOf(bootWith(Above))).toBe(refusal('Above.run', caller, 'Above.run'));
    expect(await refusalOf(bootWith(Below))).toBe(refusal('Below.run', caller, 'Below.run'));
    expect(await refusalOf(bootWith(OnClass))).toBe(refusal('class OnClass', caller, 'OnClass.run'));
  });

  it('the process method of a BullMQ processor', async () => {
    @Processor('mails')
    class Mails {
      @UseInterceptors(Locked)
      async process(): Promise<void> {}
    }
    @Processor('letters')
    @UseInterceptors(Locked)
    class Letters {
      async process(): Promise<void> {}
    }
    expect(await refusalOf(bootWith(Mails))).toBe(refusal('Mails.process', '@Processor', 'Mails.process'));
    expect(await refusalOf(bootWith(Letters))).toBe(refusal('class Letters', '@Processor', 'Letters.process'));
  });

  it('a method that is a route as well, of which only half of the calls would be locked', async () => {
    @Controller()
    class Reports {
      @Get()
      @Cron('0 0 1 1 *')
      @UseInterceptors(Locked)
      async run(): Promise<void> {}
    }
    const start = boot({ imports: [new Locks().module()], controllers: [Reports] });
    expect(await refusalOf(start)).toContain('LockInterceptor on Reports.run cannot lock a method under @Cron');
  });

  it('wherever the object and the interceptor come from', async () => {
    class Base {
      @Cron('0 0 1 1 *')
      @UseInterceptors(new Locked(memoryLockService()))
      async run(): Promise<void> {}
    }
    @Injectable()
    class Derived extends Base {}
    expect(await refusalOf(bootWith(Derived))).toContain('on Derived.run');
    expect(await refusalOf(bootWith({ provide: 'JOB', useFactory: () => new Derived() }))).toContain('on Derived.run');
    expect(await refusalOf(bootWith({ provide: 'JOB', useValue: new Base() }))).toContain('on Base.run');
  });
});

describe('LockInterceptor stays allowed', () => {
  const hosts: [string, () => { controllers?: Type[]; providers?: Type[] }][] = [
    [
      'on a controller with a scheduled method',
      () => {
        @Controller()
        @UseInterceptors(Locked)
        class Carts {
          @Get()
          list(): void {}

          @Cron('0 0 1 1 *')
          async cleanUp(): Promise<void> {}
        }
        return { controllers: [Carts] };
      },
    ],
    [
      'on a controller of messages with an event listener',
      () => {
        @Controller()
        @UseInterceptors(Locked)
        class Carts {
          @EventPattern('cart')
          onMessage(_: unknown): void {}

          @OnEvent('cart')
          onEvent(): void {}
        }
        return { controllers: [Carts] };
      },
    ],
    [
      'on a gateway with an event listener',
      () => {
        @WebSocketGateway()
        @UseInterceptors(Locked)
        class Rooms {
          @SubscribeMessage('join')
          join(): void {}

          @OnEvent('room.closed')
          notify(): void {}
        }
        return { providers: [Rooms] };
      },
    ],
    [
      'on a provider whose other methods some package may wrap with interceptors',
      () => {
        @Injectable()
        @UseInterceptors(Locked)
        class Consumer {
          @SetMetadata('RABBIT_HANDLER', { queue: 'orders' })
          onMessage(): void {}

          @Cron('0 0 1 1 *')
          async cleanUp(): Promise<void> {}
        }
        return { providers: [Consumer] };
      },
    ],
    [
      'beside a scheduled method that has another interceptor, or @WithLock',
      () => {
        @Controller()
        class Carts {
          @Get()
          @UseInterceptors(Locked)
          list(): void {}

          @Cron('0 0 1 1 *')
          @UseInterceptors({ intercept: (_, next) => next.handle() })
          @WithLock('cart')
          async cleanUp(): Promise<void> {}
        }
        return { controllers: [Carts] };
      },
    ],
  ];

  it.each(hosts)('%s', async (_, host) => {
    const app = await boot({ imports: [new Locks().module()], ...host() });
    expect(app.get(LockService).status().canVote).toBe(true);
  });

  it('beside providers that are not instances of a class', async () => {
    const bare = Object.create(null) as object;
    const app = await bootWith(
      { provide: 'BARE', useValue: bare },
      { provide: 'WITHOUT_CLASS', useValue: Object.create({ constructor: 5, run: () => undefined }) as object },
      { provide: 'PLAIN', useValue: { run: () => undefined } },
      { provide: 'FUNCTION', useValue: () => undefined },
      { provide: 'NOTHING', useValue: undefined },
      { provide: 'PROXY', useValue: new Proxy({}, { get: () => () => undefined }) },
    );
    expect(app.get('BARE')).toBe(bare);
  });
});
