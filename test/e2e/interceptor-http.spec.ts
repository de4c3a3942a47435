import { beforeEach, describe, expect, it } from '@jest/globals';
import * as common from '@nestjs/common';
import {
  ArgumentMetadata,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type NestInterceptor,
  NotFoundException,
  Param,
  type PipeTransform,
  Post,
  Redirect,
  RequestTimeoutException,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { LockInterceptor, type LockInterceptorOptions, LockService } from 'nestjs-redlock';
import { once } from 'node:events';
import { get as request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { from, map, merge, Observable, Subject, take, throwError } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { ADAPTERS } from './support/adapters.js';
import { listen, type Listening, logs } from './support/applications.js';
import { deferred, type Deferred, settle } from './support/deferred.js';
import { LocksPerTest } from './support/locks.js';
import { PassThrough, Readable } from 'node:stream';

const locks = new LocksPerTest(3);

describe('LockInterceptor over HTTP', () => {
  let piped: string[];
  let handled: string[];
  let work: Deferred<unknown>;
  let started: Deferred;
  let subject: Subject<unknown>;
  let giveUp: Subject<unknown>;

  beforeEach(() => {
    [piped, handled, work, started] = [[], [], deferred(), deferred()];
    [subject, giveUp] = [new Subject(), new Subject()];
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

  /** Gives up when the test decides, as an interceptor with a time limit does. */
  const TimeLimit: NestInterceptor = {
    intercept: (_, next) => merge(next.handle(), giveUp).pipe(take(1)),
  };

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

    @Get('limited/:id')
    @UseInterceptors(TimeLimit, LockInterceptor(idOf))
    async limited(@Param('id') id: string): Promise<unknown> {
      return this.slow(id);
    }

    @Get('observable/:id')
    @Locked()
    observable(): Observable<unknown> {
      started.resolve();
      return subject;
    }

    @Sse('events/:id')
    @Locked()
    events(): Observable<unknown> {
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

    @Post('skip/:id')
    @Locked({ onLocked: { status: 202 } })
    async skipPost(@Param('id') id: string): Promise<string> {
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

  @Controller({ path: 'scoped', scope: Scope.REQUEST })
  @UseInterceptors(LockInterceptor('scoped'))
  class Scoped {
    @Get()
    get(): boolean {
      return locks.held;
    }
  }

  describe.each(ADAPTERS)('LockInterceptor on $platform', ({ adapter }) => {
    let server: Listening;
    beforeEach(async () => {
      server = await listen({ imports: [locks.module()], controllers: [Carts, Scoped] }, adapter());
    });

    const get = (path: string, init?: RequestInit) => fetch(`${server.url}/carts/${path}`, init);
    /** A client that may leave before it receives an answer. */
    const open = (path: string) => {
      const sent = request(`${server.url}/carts/${path}`, { agent: false }).on('error', () => undefined);
      return () => new Promise((resolve) => sent.once('close', resolve).destroy());
    };
    const connections = () =>
      new Promise<number>((resolve) => {
        (server.app.getHttpServer() as Server).getConnections((_, count) => resolve(count));
      });
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

    it('runs requests for one resource one after the other', async () => {
      const responses = [get('slow/7'), get('slow/7')];
      await started.promise;
      await settle();
      expect(handled).toEqual(['7']);
      work.resolve('done');
      expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
      expect(handled).toEqual(['7', '7']);
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

    it('skips the handler and sends the status of onLocked without a body', async () => {
      const lock = await occupy('7');
      const post = async () => {
        const response = await get('skip/7', { method: 'POST' });
        return [response.status, await response.text()];
      };
      expect(await post()).toEqual([202, '']);
      expect(handled).toEqual([]);
      await lock.release();
      expect(await post()).toEqual([201, 'ran']);
    });

    it.each([
      ['answers/7', 409, ''],
      ['answers-instead/7', 200, '{"busy":["7"]}'],
      ['answers-partly/7', 409, ''],
      ['redirects/7', 409, '{"statusCode":409,"message":"Conflict"}'],
      ['reports/7', 409, '{"statusCode":409,"message":"Conflict"}'],
    ])('answers in place of a handler that sends its own response: %s', async (path, status, body) => {
      const lock = await occupy('7');
      const response = await get(path, { redirect: 'manual' });
      expect([response.status, await response.text(), handled]).toEqual([status, body, []]);
      await lock.release();
    });

    it('responds with the result of onLocked', async () => {
      const lock = await occupy('7');
      expect(await (await get('instead/7')).json()).toEqual({ busy: ['7'] });
      expect(handled).toEqual([]);
      await lock.release();
    });

    it('accepts several keys from an asynchronous key function', async () => {
      expect(await (await get('key-async/7')).json()).toEqual(['7', 'other']);
    });

    it('may be used twice for one resource, if the inner one is reentrant', async () => {
      expect(await (await get('twice/7')).text()).toBe('1');
      expect((await get('itself/7')).status).toBe(500);
    });

    it('locks request-scoped controllers', async () => {
      expect(await (await fetch(`${server.url}/scoped`)).text()).toBe('true');
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

    it('keeps the lock of a handler until it has ended, although another interceptor gave up', async () => {
      const response = get('limited/7');
      await started.promise;
      giveUp.error(new RequestTimeoutException());
      expect((await response).status).toBe(408);
      await locks.clock.advance(30_000);
      expect(locks.held).toBe(true);
      work.resolve('done');
      await eventually(() => !locks.held);
    });

    it('keeps the lock even when both the client and the other interceptor have left', async () => {
      const leave = open('limited/7');
      await started.promise;
      await leave();
      // The server must have noticed it, too.
      await eventually(async () => (await connections()) === 0);
      giveUp.error(new RequestTimeoutException());
      await settle();
      await locks.clock.advance(30_000);
      expect(locks.held).toBe(true);
      work.resolve('done');
      await eventually(() => !locks.held);
    });

    it.each(['slow', 'observable', 'events'])(
      'stops waiting when the client disconnects, runs nothing and logs only that it waited: %s',
      async (path) => {
        const lock = await occupy('7');
        logs.length = 0;
        const leave = open(`${path}/7`);
        // The first of the two timers belongs to the lock that is held.
        await eventually(() => locks.clock.pendingTimers > 1);
        await leave();
        await eventually(() => locks.clock.pendingTimers === 1);
        await lock.release();
        await settle();
        expect([handled, subject.observed, locks.held, logs]).toEqual([
          [],
          false,
          false,
          ['debug a call waits for "7"'],
        ]);
      },
    );

    it('unsubscribes from an Observable without values when the client disconnects, and releases the lock', async () => {
      const leave = open('observable/7');
      await eventually(() => subject.observed);
      expect(locks.held).toBe(true);
      await leave();
      await eventually(() => !subject.observed);
      await eventually(() => !locks.held);
    });
  });
});

/** Nest 12 streams what a handler yields; Nest 11 does not. */
const YIELDING = 'StandardSchemaValidationPipe' in common ? ['generator', 'promised', 'response', 'wrapped'] : [];

describe('LockInterceptor on streams', () => {
  let stream: PassThrough;
  let events: Subject<unknown>;
  let setUp: Deferred<Observable<unknown>>;

  beforeEach(() => {
    [stream, events, setUp] = [new PassThrough(), new Subject(), deferred()];
  });

  type PlatformResponse = ServerResponse & { raw?: ServerResponse; hijack?: () => void };

  @Controller()
  @UseInterceptors(LockInterceptor('stream', { ttl: '10s', wait: 0 }))
  class Streams {
    constructor() {
      this.bound = this.bound.bind(this);
    }

    @Get('file')
    file(): StreamableFile {
      return new StreamableFile(stream);
    }

    @Get('later')
    async later(): Promise<StreamableFile> {
      return Promise.resolve(new StreamableFile(stream));
    }

    @Get('manual')
    manual(@Res() response: PlatformResponse): void {
      response.hijack?.();
      stream.pipe(response.raw ?? response);
    }

    @Get('bound')
    bound(@Res() response: PlatformResponse): void {
      this.manual(response);
    }

    @Get('given-back')
    givenBack(@Res() response: PlatformResponse): unknown {
      response.hijack?.();
      return stream.pipe(response.raw ?? response);
    }

    @Get('generator')
    async *generator(): AsyncGenerator {
      yield* stream;
    }

    @Get('promised')
    async promised(): Promise<unknown> {
      return Promise.resolve(this.generator());
    }

    @Get('response')
    response(): Response {
      return new Response(Readable.toWeb(stream) as ReadableStream);
    }

    @Get('wrapped')
    @UseInterceptors({ intercept: (_, next) => next.handle().pipe(map((data: unknown) => ({ data }))) })
    wrapped(): PassThrough {
      return stream;
    }

    @Sse('events')
    events(): Observable<unknown> {
      return events;
    }

    @Sse('events-later')
    async eventsLater(): Promise<Observable<unknown>> {
      return setUp.promise;
    }

    @Sse('no-events')
    noEvents(): Observable<unknown> {
      return from([]);
    }
  }

  class Client {
    private received = '';
    private readonly chunks: AsyncIterator<Buffer>;

    private constructor(
      readonly response: IncomingMessage,
      readonly leave: () => void,
    ) {
      this.chunks = response[Symbol.asyncIterator]();
    }

    static async get(url: string): Promise<Client> {
      const sent = request(url, { agent: false });
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return new Client(response, () => void sent.destroy());
    }

    /** Resolves when this string has arrived. */
    async receives(text: string): Promise<void> {
      while (!this.received.includes(text)) this.received += String((await this.chunks.next()).value);
    }

    /** Resolves when nothing more can arrive, with whether the response was complete. */
    async closed(): Promise<boolean> {
      try {
        while (!(await this.chunks.next()).done);
      } catch {
        return false;
      }
      return this.response.complete;
    }
  }

  describe.each(ADAPTERS)('LockInterceptor on $platform keeps the lock', ({ adapter }) => {
    let server: Listening;
    beforeEach(async () => {
      server = await listen({ imports: [locks.module()], controllers: [Streams] }, adapter());
    });

    const open = (path: string) => Client.get(`${server.url}/${path}`);

    describe.each(['file', 'later', 'manual', 'bound', 'given-back', ...YIELDING])(
      'of a handler that streams: %s',
      (path) => {
        it('until the response has ended', async () => {
          stream.write('first');
          const client = await open(path);
          await client.receives('first');
          await locks.clock.advance(60_000);
          expect(locks.held).toBe(true);
          expect((await open(path)).response.statusCode).toBe(423);
          stream.end('last');
          await client.receives('last');
          expect(await client.closed()).toBe(true);
          await eventually(() => !locks.held);
        });

        it('until the client has disconnected', async () => {
          stream.write('first');
          const client = await open(path);
          await client.receives('first');
          expect(locks.held).toBe(true);
          client.leave();
          // A generator waits for the stream, and ends with its step.
          if (path === 'generator' || path === 'promised') stream.end();
          await eventually(() => !locks.held);
          stream.destroy();
        });

        it('or aborts the response when the lock is lost, so that a part cannot pass for the whole', async () => {
          stream.write('first');
          const client = await open(path);
          await client.receives('first');
          await locks.lose();
          expect(await client.closed()).toBe(false);
          stream.destroy();
        });
      },
    );

    describe('of server-sent events', () => {
      it('until they are complete', async () => {
        const client = await open('events');
        await eventually(() => events.observed);
        events.next({ data: 'one' });
        await client.receives('data: one');
        await locks.clock.advance(60_000);
        expect(locks.held).toBe(true);
        events.complete();
        expect(await client.closed()).toBe(true);
        await eventually(() => !locks.held);
      });

      it.each([0, 1])('until the client has disconnected after %i of them, and ends the Observable', async (count) => {
        const client = await open('events');
        await eventually(() => events.observed);
        if (count > 0) {
          events.next({ data: 'one' });
          await client.receives('data: one');
        }
        expect(locks.held).toBe(true);
        client.leave();
        await eventually(() => !events.observed);
        await eventually(() => !locks.held);
      });

      it('while a promise sets them up', async () => {
        const opening = open('events-later');
        await eventually(() => locks.held);
        await locks.clock.advance(60_000);
        expect(locks.held).toBe(true);
        setUp.resolve(from([{ data: 'only' }]));
        const client = await opening;
        expect(await client.closed()).toBe(true);
        await eventually(() => !locks.held);
      });

      it('even if there are none', async () => {
        const client = await open('no-events');
        expect(await client.closed()).toBe(true);
        await eventually(() => !locks.held);
      });

      it('and ends them with an error when the lock is lost', async () => {
        const client = await open('events');
        await eventually(() => events.observed);
        events.next({ data: 'one' });
        await client.receives('data: one');
        await locks.lose();
        await client.receives('event: error');
        expect(events.observed).toBe(false);
        await client.closed();
      });
    });
  });
});
