import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  ArgumentMetadata,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  NotFoundException,
  Param,
  type PipeTransform,
  Redirect,
  Res,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { LockInterceptor, type LockInterceptorOptions, LockService } from 'nestjs-redlock';
import type { ServerResponse } from 'node:http';
import { from, type Observable, Subject, throwError } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { ADAPTERS } from './support/adapters.js';
import { listen, type Listening } from './support/applications.js';
import { deferred, type Deferred, settle } from './support/deferred.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest(3);

describe('LockInterceptor over HTTP', () => {
  let piped: string[];
  let handled: string[];
  let work: Deferred<unknown>;
  let started: Deferred;
  let subject: Subject<unknown>;

  beforeEach(() => {
    [piped, handled, work, started] = [[], [], deferred(), deferred()];
    subject = new Subject();
  });

  const idOf = (context: ExecutionContext) => context.switchToHttp().getRequest<{ params: { id: string } }>().params.id;
  /** Notes whether the lock is held when the response has been sent. */
  const watchedIdOf = (context: ExecutionContext) => {
    const response = context.switchToHttp().getResponse<ServerResponse & { raw?: ServerResponse }>();
    (response.raw ?? response).once('finish', () => handled.push(locks.held ? 'sent under the lock' : 'sent'));
    return idOf(context);
  };
  const Locked = (options?: LockInterceptorOptions) =>
    UseInterceptors(LockInterceptor(idOf, { ttl: '10s', ...options }));

  @Injectable()
  class WatchPipe implements PipeTransform<string> {
    transform(value: string, _: ArgumentMetadata): string {
      piped.push(`${value} ${locks.held ? 'locked' : 'unlocked'}`);
      return value;
    }
  }

  @Controller('carts')
  class Carts {
    constructor(private readonly locks: LockService) {}

    @Get('json/:id')
    @Locked({ wait: 0 })
    async json(@Param('id', WatchPipe) id: string): Promise<unknown> {
      handled.push(id);
      await Promise.resolve();
      return { id, locked: locks.held, current: this.locks.current()?.resources };
    }

    @Get('slow/:id')
    @Locked()
    async slow(@Param('id') id: string): Promise<unknown> {
      handled.push(id);
      started.resolve();
      return work.promise;
    }

    @Get('observable/:id')
    @Locked()
    observable(): Observable<unknown> {
      started.resolve();
      return subject;
    }

    @Get('throws/:id')
    @Locked()
    async throws(): Promise<void> {
      await Promise.resolve();
      throw new NotFoundException('no such cart');
    }

    @Get('fails/:id')
    @Locked()
    fails(): Observable<never> {
      return throwError(() => new NotFoundException('no such cart'));
    }

    @Get('skip/:id')
    @Locked({ onLocked: { status: 202 } })
    async skip(@Param('id') id: string): Promise<string> {
      handled.push(id);
      return Promise.resolve('ran');
    }

    @Get('instead/:id')
    @Locked({ wait: 0, onLocked: (error) => ({ busy: error.resources }) })
    async instead(@Param('id') id: string): Promise<string> {
      handled.push(id);
      return Promise.resolve('ran');
    }

    @Get('nothing/:id')
    @UseInterceptors(LockInterceptor(watchedIdOf))
    nothing(): void {
      handled.push('nothing');
    }

    @Get('getter/:id')
    @Locked({ wait: 0 })
    getter(): object {
      return {
        get late(): never {
          throw new Error('not loaded');
        },
      };
    }

    @Get('answers/:id')
    @Locked({ wait: 0, onLocked: { status: 409 } })
    answers(@Res() response: { send(body: string): void }): void {
      response.send('ran');
    }

    @Get('answers-instead/:id')
    @Locked({ wait: 0, onLocked: (error) => ({ busy: error.resources }) })
    answersInstead(@Res() response: { send(body: string): void }): void {
      response.send('ran');
    }

    @Get('answers-partly/:id')
    @Locked({ wait: 0, onLocked: { status: 409 } })
    answersPartly(@Res({ passthrough: true }) _: unknown): string {
      return 'ran';
    }

    @Get('redirects/:id')
    @Redirect('/elsewhere')
    @Locked({ wait: 0, onLocked: { status: 409 } })
    redirects(): void {
      handled.push('redirects');
    }

    @Sse('reports/:id')
    @Locked({ wait: 0, onLocked: { status: 409 } })
    reports(): Observable<unknown> {
      return from([{ data: 'ran' }]);
    }

    @Get('key-async/:id')
    @UseInterceptors(LockInterceptor(async (context) => Promise.resolve([idOf(context), 'other'])))
    keyAsync(): unknown {
      return this.locks.current()?.resources;
    }

    @Get('itself/:id')
    @UseInterceptors(LockInterceptor(idOf), LockInterceptor(idOf))
    itself(): void {
      handled.push('itself');
    }

    @Get('twice/:id')
    @UseInterceptors(LockInterceptor(idOf), LockInterceptor(idOf, { ttl: '10s', reentrant: true }))
    twice(): number {
      return locks.masters[0]!.size;
    }
  }

  describe.each(ADAPTERS)('LockInterceptor on $platform', ({ adapter }) => {
    let server: Listening;
    beforeEach(async () => {
      server = await listen({ imports: [locks.module()], controllers: [Carts] }, adapter());
    });

    const get = (path: string, init?: RequestInit) => fetch(`${server.url}/carts/${path}`, init);
    const occupy = (id: string) => server.app.get(LockService).acquire(id, '30s');

    it('takes the lock before the pipes run, and shows it to the handler', async () => {
      const response = await get('json/7');
      expect(await response.json()).toEqual({ id: '7', locked: true, current: ['7'] });
      expect(piped).toEqual(['7 locked']);
    });

    it('has released the lock when the client receives the response, so the next request finds it free', async () => {
      for (let i = 0; i < 20; i++) {
        const response = await get('json/7');
        expect(response.status).toBe(200);
        await response.json();
        expect(locks.held).toBe(false);
      }
    });

    it('has released the lock of a handler without a result before the response is sent', async () => {
      expect((await get('nothing/7')).status).toBe(200);
      await eventually(() => handled.length === 2);
      expect(handled).toEqual(['nothing', 'sent']);
    });

    it('has released the lock of a handler whose result cannot be read', async () => {
      expect((await get('getter/7')).status).toBe(500);
      await eventually(() => !locks.held);
    });

    it('runs neither the pipes nor the handler when the resource is held', async () => {
      const lock = await occupy('7');
      expect((await get('json/7')).status).toBe(423);
      expect([piped, handled]).toEqual([[], []]);
      expect((await get('json/8')).status).toBe(200);
      await lock.release();
    });

    it('keeps the lock until an Observable completes, and responds with its last value', async () => {
      const response = get('observable/7');
      await started.promise;
      await settle();
      subject.next({ n: 1 });
      subject.next({ n: 2 });
      await locks.clock.advance(30_000);
      expect(locks.held).toBe(true);
      subject.complete();
      expect(await (await response).json()).toEqual({ n: 2 });
      expect(subject.observed).toBe(false);
    });

    it.each(['throws', 'fails'])('passes on unchanged the error of a handler that %s', async (path) => {
      const response = await get(`${path}/7`);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ message: 'no such cart' });
    });

    it.each([
      ['skip/7', 202, ''],
      ['instead/7', 200, '{"busy":["7"]}'],
      ['answers/7', 409, ''],
      ['answers-instead/7', 200, '{"busy":["7"]}'],
      ['answers-partly/7', 409, ''],
      ['redirects/7', 409, '{"statusCode":409,"message":"Conflict"}'],
      ['reports/7', 409, '{"statusCode":409,"message":"Conflict"}'],
    ])('answers instead of the handler, also of one that sends its own response: %s', async (path, status, body) => {
      const lock = await occupy('7');
      const response = await get(path, { redirect: 'manual' });
      expect([response.status, await response.text(), handled]).toEqual([status, body, []]);
      await lock.release();
    });

    it('accepts several keys from an asynchronous key function', async () => {
      expect(await (await get('key-async/7')).json()).toEqual(['7', 'other']);
    });

    it('may be used twice for one resource, if the inner one is reentrant', async () => {
      expect(await (await get('twice/7')).text()).toBe('1');
      expect((await get('itself/7')).status).toBe(500);
    });

    it('responds with 500 if the lock was lost, although the handler returned a value', async () => {
      const response = get('slow/7');
      await started.promise;
      await locks.lose();
      work.resolve('done');
      expect((await response).status).toBe(500);
    });

    it('responds with 500 as soon as the lock of a running Observable is lost', async () => {
      const response = get('observable/7');
      await started.promise;
      await settle();
      subject.next(1);
      await locks.lose();
      expect((await response).status).toBe(500);
      expect(subject.observed).toBe(false);
    });
  });
});
