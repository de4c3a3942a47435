import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  type INestApplicationContext,
  Module,
  Res,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  type Lock,
  LockExceptionFilter,
  type LockExceptionFilterOptions,
  LockService,
  LockServiceStoppedError,
  WithLock,
} from 'nestjs-redlock';
import { ADAPTERS } from './support/adapters.js';
import { listen, logs } from './support/applications.js';
import { LocksPerTest } from './support/locks.js';

let held: Lock | undefined;

const locks = new LocksPerTest(3);

/** Acquires the resource outside of all requests. */
async function hold(app: INestApplicationContext, ttl = 8_200): Promise<void> {
  held = await app.get(LockService).acquire('order', ttl);
  logs.length = 0;
}

/** A response of Express or of Fastify. */
interface AnyResponse {
  readonly raw?: AnyResponse;
  write(text: string): unknown;
  flushHeaders(): void;
}

@Controller()
class Orders {
  @Get('locked')
  @WithLock('order', { ttl: '10s', wait: 0 })
  async locked(): Promise<string> {
    return 'done';
  }

  @Get('stopped')
  async stopped(): Promise<string> {
    throw new LockServiceStoppedError(['order']);
  }

  @Get('nested')
  @WithLock('order')
  async nested(): Promise<string> {
    return this.locked();
  }

  @Get('broken')
  async broken(): Promise<string> {
    throw new Error('a mistake');
  }

  @Get('begun')
  async begun(@Res() response: AnyResponse): Promise<void> {
    const raw = response.raw ?? response;
    raw.flushHeaders();
    raw.write('half');
    await this.locked();
  }
}

const UNAVAILABLE = {
  status: 503,
  retryAfter: '1',
  body: { statusCode: 503, message: 'Service Unavailable', code: 'QUORUM_UNAVAILABLE' },
};

/** What the filter and Nest log about requests. */
const linesOf = (level: string) => logs.filter((line) => line.startsWith(`${level} `));

async function get(url: string) {
  const response = await fetch(url);
  const [text, retryAfter] = [await response.text(), response.headers.get('retry-after')];
  return { status: response.status, retryAfter, body: JSON.parse(text) as unknown };
}

describe.each(ADAPTERS)('LockExceptionFilter on $platform', ({ adapter }) => {
  // Before the applications close, which wait for it.
  afterEach(async () => {
    await held?.release();
    held = undefined;
  });

  const start = (options?: LockExceptionFilterOptions) =>
    listen({ imports: [locks.module()], controllers: [Orders] }, adapter(), (app) =>
      app.useGlobalFilters(new LockExceptionFilter(options)),
    );

  it.each([
    [423, '9', 'the remaining time in whole seconds', 8_200, undefined],
    [423, '1', 'a second at least', 300, undefined],
    [503, '9', 'another status if that is wanted', 8_200, { lockedStatus: 503 }],
  ])('answers contention with %i and Retry-After %s, %s, logged at debug level only', async (...row) => {
    const [status, retryAfter, , ttl, options] = row;
    const { app, url } = await start(options);
    await hold(app, ttl);
    const message = status === 423 ? 'Locked' : 'Service Unavailable';
    expect(await get(`${url}/locked`)).toEqual({
      status,
      retryAfter,
      body: { statusCode: status, message, code: 'LOCK_NOT_ACQUIRED' },
    });
    expect(logs).toEqual([expect.stringMatching(/^debug "order" is held by \S+ since \S+: not acquired \(/)]);
  });

  it('answers an outage with 503, and warns once', async () => {
    const { url } = await start();
    locks.each('takeDown');
    logs.length = 0;
    for (let request = 1; request <= 3; request++) {
      expect(await get(`${url}/locked`)).toEqual(UNAVAILABLE);
    }
    expect(linesOf('warn').filter((line) => line.includes('cannot lock "order"'))).toHaveLength(1);
    expect(linesOf('debug').filter((line) => line.includes('cannot lock "order"'))).toHaveLength(2);
    expect(logs.filter((line) => line.startsWith('error') && line.includes('order'))).toEqual([]);
  });

  it('answers 503 while the application shuts down', async () => {
    const { url } = await start();
    logs.length = 0;
    const body = { ...UNAVAILABLE.body, code: 'LOCK_SERVICE_STOPPED' };
    expect(await get(`${url}/stopped`)).toEqual({ ...UNAVAILABLE, body });
    expect(logs).toEqual(['debug "order" was not acquired: the lock service is shutting down']);
  });

  it('answers other errors of the library as Nest does, with their code, and logs them as errors', async () => {
    const { url } = await start();
    logs.length = 0;
    const body = { statusCode: 500, message: 'Internal Server Error', code: 'LOCK_REENTRY' };
    expect(await get(`${url}/nested`)).toEqual({ status: 500, retryAfter: null, body });
    expect(logs).toEqual([expect.stringMatching(/^error this call chain already holds "order"/)]);
  });

  it('leaves other errors to Nest', async () => {
    const { url } = await start();
    logs.length = 0;
    expect(await get(`${url}/broken`)).toMatchObject({ status: 500, retryAfter: null });
    expect(logs).toEqual(['error a mistake']);
  });

  it('ends a response that has begun', async () => {
    const { app, url } = await start();
    await hold(app);
    const response = await fetch(`${url}/begun`);
    expect([response.status, await response.text()]).toEqual([200, 'half']);
  });

  it('can be provided to the whole application', async () => {
    @Module({
      imports: [locks.module()],
      controllers: [Orders],
      providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
    })
    class Whole {}
    const whole = await listen({ imports: [Whole] }, adapter());
    await hold(whole.app);
    expect(await get(`${whole.url}/locked`)).toMatchObject({ status: 423, retryAfter: '9' });
  });

  it('takes precedence over a filter for everything that was registered before it', async () => {
    @Catch()
    class Everything implements ExceptionFilter {
      catch(_: unknown, host: ArgumentsHost): void {
        host
          .switchToHttp()
          .getResponse<{ status(code: number): { send(text: string): void } }>()
          .status(500)
          .send('{}');
      }
    }
    const { app, url } = await listen({ imports: [locks.module()], controllers: [Orders] }, adapter(), (host) =>
      host.useGlobalFilters(new Everything(), new LockExceptionFilter()),
    );
    await hold(app);
    expect(await get(`${url}/locked`)).toMatchObject({ status: 423 });
    expect(await get(`${url}/broken`)).toMatchObject({ status: 500, body: {} });
  });
});

describe('LockExceptionFilter', () => {
  it.each([
    [{ lockedStatus: 200 }, 'LockExceptionFilter: lockedStatus must be an HTTP status from 400 to 599, got 200'],
    [{ lockedStatus: '423' }, 'LockExceptionFilter: lockedStatus must be an HTTP status from 400 to 599, got "423"'],
    [{ lockdStatus: 423 }, 'LockExceptionFilter may hold known options only (did you mean lockedStatus?)'],
    [503, 'LockExceptionFilter must be an object of options that can be read, got 503'],
  ])('refuses the options %j', (options, message) => {
    expect(() => new LockExceptionFilter(options as LockExceptionFilterOptions)).toThrow(message);
  });

  it('answers the errors of another copy of this package', async () => {
    jest.resetModules();
    const other = await import('../../lib/errors.js');
    const error = new other.LockNotAcquiredError(['order'], [], 0, 1_500);
    @Controller()
    class Orders {
      @Get()
      list(): void {
        throw error;
      }
    }
    const { url } = await listen({ controllers: [Orders] }, undefined, (app) =>
      app.useGlobalFilters(new LockExceptionFilter()),
    );
    expect(await get(url)).toMatchObject({ status: 423, retryAfter: '2' });
  });

  it('warns of the next outage a minute after the last failed request', async () => {
    const clock = jest.spyOn(performance, 'now');
    try {
      const { url } = await listen({ imports: [locks.module()], controllers: [Orders] }, undefined, (app) =>
        app.useGlobalFilters(new LockExceptionFilter()),
      );
      locks.each('takeDown');
      const warningsAt: number[] = [];
      for (const now of [1_000, 50_000, 100_000, 170_000]) {
        logs.length = 0;
        clock.mockReturnValue(now);
        await get(`${url}/locked`);
        if (linesOf('warn').some((line) => line.includes('cannot lock "order"'))) warningsAt.push(now);
      }
      expect(warningsAt).toEqual([1_000, 170_000]);
    } finally {
      clock.mockRestore();
    }
  });
});
