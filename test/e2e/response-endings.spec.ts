import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import * as common from '@nestjs/common';
import {
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Get,
  type NestInterceptor,
  NotFoundException,
  Param,
  type PipeTransform,
  RequestTimeoutException,
  Res,
  Sse,
  StreamableFile,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import {
  type Lock,
  LockExceptionFilter,
  LockInterceptor,
  type LockInterceptorOptions,
  LockService,
} from 'nestjs-redlock';
import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { catchError, from, map, merge, NEVER, Observable, of, Subject, take } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { listen, type Listening, logs } from './support/applications.js';
import { deferred, type Deferred, settle } from './support/deferred.js';
import { type Connection, open, WAYS } from './support/http-clients.js';
import { SERVERS } from './support/http-servers.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest();

let started: Deferred;
let work: Deferred;
let gone: Deferred;
let pipes: Deferred;
let ran: number;
let giveUp: Subject<unknown>;
let stream: PassThrough;
let events: Subject<unknown>;
let connection: EventEmitter | undefined;

beforeEach(() => {
  [started, work, gone, pipes, ran] = [deferred(), deferred(), deferred(), deferred(), 0];
  [giveUp, stream, events] = [new Subject(), new PassThrough(), new Subject()];
  // What is torn down may fail.
  stream.on('error', () => undefined);
});

type Raw = ServerResponse & { raw?: ServerResponse; hijack?: () => void };
type Sender = Raw & { send(body: string): void };
const rawOf = (response: Raw): ServerResponse => response.raw ?? response;

interface RawRequest {
  readonly raw?: RawRequest;
  readonly url: string;
  readonly stream?: EventEmitter;
  readonly socket: EventEmitter;
}

/** The key of all handlers but one, which notes when the server sees that the client has gone. */
function key(context: ExecutionContext): string {
  const request = context.switchToHttp().getRequest<RawRequest>();
  const { stream: stream2, socket, url } = request.raw ?? request;
  if (url.startsWith('/forever')) return 'another';
  const carrier = (request.raw ?? request).constructor.name.startsWith('Http2') ? stream2! : socket;
  if (carrier !== connection) carrier.once('close', () => gone.resolve());
  connection = carrier;
  return 'response';
}

const WaitingPipe: PipeTransform = {
  transform: async (value: unknown) => {
    started.resolve();
    await pipes.promise;
    return value;
  },
};

/** Another way to the response than `@Res`. */
const Response = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const response = context.switchToHttp().getResponse<Raw>();
  response.hijack?.();
  return rawOf(response);
});

/** Gives up when the test decides, as an interceptor with a time limit does. */
const TimeLimit: NestInterceptor = {
  intercept: (_, next) => merge(next.handle(), giveUp).pipe(take(1)),
};
const Silenced: NestInterceptor = {
  intercept: (_, next) => merge(next.handle(), giveUp).pipe(catchError(() => of(undefined))),
};
const Locked = LockInterceptor(key, { ttl: '10s', wait: '5s' });

const expectReleased = (): Promise<void> => eventually(() => !locks.held);

@Controller()
@UseInterceptors(Locked)
class Endings {
  constructor() {
    this.bound = this.bound.bind(this);
  }

  @Get('plain')
  async plain(): Promise<string> {
    ran++;
    started.resolve();
    await work.promise;
    return 'done';
  }

  @Get('file')
  async file(): Promise<StreamableFile> {
    await this.plain();
    return new StreamableFile(stream);
  }

  private async *parts(): AsyncGenerator {
    try {
      yield 'progress';
      started.resolve();
      await work.promise;
      yield 'more';
    } finally {
      await pipes.promise;
    }
  }

  @Get('generated-file')
  generatedFile(): StreamableFile {
    return new StreamableFile(Readable.from(this.parts()));
  }

  @Get('yielding')
  yielding(): AsyncGenerator {
    return this.parts();
  }

  @Get('yielding-later')
  async yieldingLater(): Promise<AsyncGenerator> {
    return Promise.resolve(this.parts());
  }

  @Get('observed-file')
  observedFile(): Observable<unknown> {
    return new Observable((subscriber) => {
      void this.plain().then(() => {
        subscriber.next(new StreamableFile(stream));
        subscriber.complete();
      });
    });
  }

  @Get('answers')
  async answers(@Res() response: Sender): Promise<void> {
    await this.plain();
    response.send('done');
  }

  /** An import that reports its progress, and does not depend on the client. */
  @Get('progress')
  async progress(@Res() response: Raw): Promise<void> {
    response.hijack?.();
    rawOf(response).on('error', () => undefined);
    rawOf(response).write('progress');
    await this.plain();
    rawOf(response).end('done');
  }

  @Get('part')
  async part(@Res() response: Raw): Promise<void> {
    response.hijack?.();
    await this.plain();
    rawOf(response).write('part');
  }

  @Get('silenced-inside')
  @UseInterceptors(Silenced)
  silencedInside(@Res() response: Raw): Promise<void> {
    return this.sendsAtEnd(response);
  }

  private async sendsAtEnd(response: Raw): Promise<void> {
    response.hijack?.();
    await this.plain();
    rawOf(response).end('done');
  }

  @Get('limited-inside')
  @UseInterceptors(TimeLimit)
  limitedInside(): Promise<string> {
    return this.plain();
  }

  @Get('piped-inside/:id')
  @UseInterceptors(TimeLimit)
  async pipedInside(@Param('id', WaitingPipe) _: string): Promise<void> {
    ran++;
    await work.promise;
  }

  @Get('hidden')
  async hidden(@Response() response: ServerResponse): Promise<void> {
    response.write('progress');
    await this.plain();
  }

  @Get('early')
  async early(@Res() response: Raw): Promise<void> {
    response.hijack?.();
    rawOf(response).end('accepted');
    await this.plain();
  }

  /** The handler returns, and the response goes on. */
  @Get('live')
  live(@Res() response: Raw): void {
    response.hijack?.();
    rawOf(response).write('progress');
    stream.pipe(rawOf(response));
    started.resolve();
  }

  @Get('sends-later')
  sendsLater(@Res() response: Raw): void {
    response.hijack?.();
    void this.plain().then(() => rawOf(response).end('done'));
  }

  /** Nothing declares that it returns an Observable. */
  @Get('quiet')
  async quiet(): Promise<unknown> {
    return Promise.resolve(events);
  }

  @Sse('events')
  events(): Observable<unknown> {
    return events;
  }

  /** Nest sends the events all the same. */
  @Sse('events-with-response')
  eventsWithResponse(@Res() _: unknown): Observable<unknown> {
    return events;
  }

  @Sse('events-later')
  async eventsLater(): Promise<Observable<unknown>> {
    await this.plain();
    return events;
  }

  @Get('bound')
  bound(@Res() response: Raw): void {
    this.live(response);
  }

  @Get('given-back')
  givenBack(@Res() response: Raw): unknown {
    response.hijack?.();
    return stream.pipe(rawOf(response));
  }

  @Get('given')
  given(): StreamableFile {
    return new StreamableFile(stream);
  }

  @Get('untold')
  untold(): StreamableFile {
    const destroy = (error: Error | null, closed: (error: Error | null) => void): void =>
      void work.promise.then(() => closed(error));
    return new StreamableFile(Object.assign(Readable.from(['all'], { emitClose: false }), { _destroy: destroy }));
  }

  @Get('generator')
  async *generator(): AsyncGenerator {
    yield* stream;
  }

  @Get('response')
  response(): globalThis.Response {
    return new globalThis.Response(Readable.toWeb(stream) as ReadableStream);
  }

  @Get('wrapped')
  @UseInterceptors({ intercept: (_, next) => next.handle().pipe(map((data: unknown) => ({ data }))) })
  wrapped(): PassThrough {
    return stream;
  }

  @Sse('forever')
  forever(): Observable<unknown> {
    return NEVER;
  }
}

/** Under interceptors that give up around the lock. */
@Controller()
class GivenUp {
  private readonly endings = new Endings();

  @Get('silenced')
  @UseInterceptors(Silenced, Locked)
  silenced(@Res() response: Raw): Promise<void> {
    return this.endings.progress(response);
  }

  @Get('limited')
  @UseInterceptors(TimeLimit, Locked)
  limited(): Promise<string> {
    return this.endings.plain();
  }

  @Get('piped/:id')
  @UseInterceptors(TimeLimit, Locked)
  piped(@Param('id', WaitingPipe) id: string): Promise<void> {
    return this.endings.pipedInside(id);
  }
}

const locked = (onLocked: NonNullable<LockInterceptorOptions['onLocked']> = 'throw') =>
  LockInterceptor('response', { ttl: '10s', wait: '2s', onLocked });
const several = (): Observable<unknown> => from([{ data: 'one' }, { data: 'two' }]);

/** They wait for their lock. */
@Controller('waiting')
@UseFilters(LockExceptionFilter)
class Waiting {
  @Get('silenced')
  @UseInterceptors(Silenced, locked())
  silenced(@Res() response: Sender): void {
    ran++;
    response.send('done');
  }

  @Get('limited')
  @UseInterceptors(TimeLimit, locked())
  limited(@Res() response: Sender): void {
    this.silenced(response);
  }

  @Get('conflicts')
  @UseInterceptors(Silenced, locked({ status: 409 }))
  conflicts(@Res() response: Sender): void {
    this.silenced(response);
  }

  @Get('returning')
  @UseInterceptors(Silenced, locked())
  returning(): void {
    ran++;
  }

  @Sse('quiet')
  @UseInterceptors(locked())
  quiet(): Observable<unknown> {
    return NEVER;
  }

  @Sse('missing')
  @UseInterceptors(locked())
  async missing(): Promise<Observable<unknown>> {
    await Promise.resolve();
    throw new NotFoundException();
  }

  @Sse('status')
  @UseInterceptors(locked({ status: 409 }))
  status(): Observable<unknown> {
    return NEVER;
  }

  @Sse('instead')
  @UseInterceptors(locked(several))
  instead(): Observable<unknown> {
    return NEVER;
  }

  @Sse('one-instead')
  @UseInterceptors(locked(() => ({ data: 'one' })))
  oneInstead(): Observable<unknown> {
    return NEVER;
  }

  @Get('last')
  @UseInterceptors(locked(several))
  last(): void {}

  @Get('answers')
  @UseInterceptors(locked(several))
  answers(@Res() _: unknown): void {}
}

/** Nest 12 streams what a handler yields; Nest 11 does not. */
const isNest12 = 'StandardSchemaValidationPipe' in common;
const YIELDING = isNest12 ? ['yielding', 'yielding-later'] : [];
const STREAMING = isNest12 ? ['generator', 'response', 'wrapped'] : [];

describe.each(SERVERS)('The lock of a request on $server', ({ version, adapter }) => {
  let server: Listening;
  let client: Connection;

  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Endings, GivenUp, Waiting] }, adapter());
    client = await open(version, server.url);
  });
  afterEach(() => client.leave());

  const expectHeld = async (): Promise<void> => {
    await settle();
    await locks.clock.advance(30_000);
    expect(locks.held).toBe(true);
  };

  describe.each([...WAYS[version]])('whose client %s', (way) => {
    const leave = async (): Promise<void> => {
      client.leave(way);
      await gone.promise;
    };

    it.each(['plain', 'limited', 'file', 'answers', 'progress', 'events-later', 'sends-later'])(
      'is held while the handler runs, and no longer: %s',
      async (path) => {
        client.send(`/${path}`);
        if (path === 'progress') await client.receives('progress');
        await started.promise;
        await leave();
        if (path === 'limited') giveUp.error(new RequestTimeoutException());
        // The last one has returned.
        if (path !== 'sends-later') await expectHeld();
        work.resolve();
        await expectReleased();
        expect(events.observed).toBe(false);
      },
    );

    it.each(['generated-file', ...YIELDING])(
      'is held while a generator works on, and in its `finally`: %s',
      async (path) => {
        client.send(`/${path}`);
        await client.receives('progress');
        await started.promise;
        await leave();
        await expectHeld();
        work.resolve();
        await expectHeld();
        pipes.resolve();
        await expectReleased();
      },
    );

    it.each(['live', 'bound', 'given', 'given-back', 'file', 'observed-file', ...STREAMING])(
      'ends although nothing more is written: %s',
      async (path) => {
        work.resolve();
        client.send(`/${path}`);
        stream.write('progress');
        await client.receives('progress');
        await expectHeld();
        await leave();
        // A generator waits for the stream, and ends with its step.
        if (path === 'generator') stream.end();
        await expectReleased();
      },
    );

    it.each(['quiet', 'events', 'events-later'])('ends with an Observable that emits nothing: %s', async (path) => {
      work.resolve();
      client.send(`/${path}`);
      await eventually(() => events.observed);
      await expectHeld();
      await leave();
      await expectReleased();
      expect(events.observed).toBe(false);
    });

    it.each(['plain', 'quiet', 'events'])(
      'is not waited for: nothing runs, and the log says only that it waited: %s',
      async (path) => {
        const other = await server.app.get(LockService).acquire('response', '30s');
        logs.length = 0;
        client.send(`/${path}`);
        await eventually(() => locks.clock.pendingTimers > 1);
        await leave();
        await eventually(() => locks.clock.pendingTimers === 1);
        await other.release();
        await settle();
        expect([ran, events.observed, locks.held, logs]).toEqual([
          0,
          false,
          false,
          ['debug a call waits for "response"'],
        ]);
      },
    );
  });

  it('is held while pipes and handler run, although an interceptor gave up', async () => {
    client.send('/piped/7');
    await started.promise;
    giveUp.error(new RequestTimeoutException());
    await expectHeld();
    pipes.resolve();
    await settle();
    await expectHeld();
    expect(ran).toBe(1);
    work.resolve();
    await expectReleased();
  });

  it('ends when an interceptor inside of it gives up before the handler begins, which does not run', async () => {
    client.send('/piped-inside/7');
    await started.promise;
    giveUp.error(new RequestTimeoutException());
    expect(await client.status()).toBe(408);
    await expectReleased();
    pipes.resolve();
    await settle();
    expect(ran).toBe(0);
  });

  it('is held while a response is written that the handler has from elsewhere', async () => {
    client.send('/hidden');
    await client.receives('progress');
    await expectHeld();
    client.leave();
    await gone.promise;
    await expectHeld();
    work.resolve();
    await expectReleased();
  });

  it.each(['silenced', 'limited', 'limited-inside'])(
    'is held while the handler runs, although an interceptor gave up: %s',
    async (path) => {
      client.send(`/${path}`);
      await started.promise;
      if (path === 'silenced') await client.receives('progress');
      giveUp.error(new RequestTimeoutException());
      if (path !== 'silenced') expect(await client.status()).toBe(408);
      await expectHeld();
      work.resolve();
      await expectReleased();
    },
  );

  it('is held while the handler runs, although the response has ended', async () => {
    client.send('/early');
    await client.receives('accepted');
    await expectHeld();
    work.resolve();
    await expectReleased();
  });

  it.each(['file', 'observed-file', 'live', 'sends-later'])(
    'is held until the response has ended: %s',
    async (path) => {
      client.send(`/${path}`);
      await started.promise;
      stream.write('some');
      if (path !== 'sends-later') work.resolve();
      if (path !== 'sends-later') await client.receives('some');
      await expectHeld();
      stream.end('done');
      work.resolve();
      await client.receives('done');
      await expectReleased();
    },
  );

  it.each(['file', 'live'])('ends with a source that fails: %s', async (path) => {
    work.resolve();
    client.send(`/${path}`);
    stream.write('progress');
    await client.receives('progress');
    await expectHeld();
    stream.destroy(new Error('broken'));
    // What is piped by hand does not end the response.
    if (path === 'live') client.leave();
    await expectReleased();
  });

  it('ends with a stream that has closed without an event', async () => {
    client.send('/untold');
    await client.receives('all');
    await expectHeld();
    work.resolve();
    await expectReleased();
  });

  it.each(['plain', 'file', 'events'])('ends when a request without a body is answered: %s', async (path) => {
    work.resolve();
    stream.end('some');
    client.send(`/${path}`, 'HEAD');
    expect(await client.status()).toBe(200);
    await expectReleased();
  });

  it('is held while a client does not read what is written, and ends when it has gone', async () => {
    work.resolve();
    client.send('/file');
    stream.write('some');
    await client.receives('some');
    client.pause();
    Readable.from(Array.from({ length: 300 }, () => Buffer.alloc(100_000))).pipe(stream);
    await eventually(() => stream.writableNeedDrain);
    await expectHeld();
    client.leave();
    await expectReleased();
  });

  describe.each(['given', 'live', 'bound', 'given-back', ...STREAMING])('of a handler that streams: %s', (path) => {
    beforeEach(async () => {
      client.send(`/${path}`);
      stream.write('first');
      await client.receives('first');
    });

    it('is held until the response has ended', async () => {
      await expectHeld();
      stream.end('last');
      await client.receives('last');
      await expectReleased();
    });

    it('closes the connection when it is lost, so that a part cannot pass for the whole', async () => {
      await locks.lose();
      expect(await client.closed()).toBe(false);
      stream.destroy();
    });
  });

  it.each([0, 1])('ends with server-sent events that are complete after %i of them', async (count) => {
    client.send('/events');
    await eventually(() => events.observed);
    if (count > 0) {
      events.next({ data: 'one' });
      await client.receives('data: one');
    }
    await expectHeld();
    events.complete();
    await expectReleased();
  });

  it('closes the connection when it is lost while a handler still writes, at once', async () => {
    client.send('/progress');
    await client.receives('progress');
    await locks.lose();
    expect(await client.closed()).toBe(false);
    work.resolve();
    await expectReleased();
  });

  it('closes the connection if it was lost before a handler left a part of a response behind', async () => {
    client.send('/part');
    await started.promise;
    await locks.lose();
    work.resolve();
    expect(await client.closed()).toBe(false);
  });

  it('leaves an answer to the handler if nothing of it was sent when it is lost, though an interceptor has given up', async () => {
    client.send('/silenced-inside');
    await started.promise;
    giveUp.error(new RequestTimeoutException());
    await settle();
    await locks.lose();
    work.resolve();
    expect(await client.status()).toBe(200);
  });

  it.each(['events', 'events-with-response'])(
    'ends server-sent events with an error when it is lost: %s',
    async (path) => {
      client.send(`/${path}`);
      await eventually(() => events.observed);
      events.next({ data: 'one' });
      await client.receives('data: one');
      await locks.lose();
      await client.receives('event: error');
      expect(events.observed).toBe(false);
    },
  );

  describe('whose request waits for another holder', () => {
    let holder: Lock;

    /** Asks, and waits longer than Nest does before it sends the headers of events. */
    async function ask(path: string, timers = 2): Promise<void> {
      client.send(`/waiting/${path}`);
      await eventually(() => locks.clock.pendingTimers >= timers);
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(client.received).toBe('');
    }
    beforeEach(async () => {
      holder = await server.app.get(LockService).acquire('response', '30s');
    });
    afterEach(() => holder.release());

    describe('and gives up meanwhile', () => {
      const askInVain = async (path: string): Promise<void> => {
        await ask(path);
        giveUp.error(new RequestTimeoutException());
        await settle();
      };

      it('does not leave the client without an answer: a handler that has the response still runs in its turn', async () => {
        await askInVain('silenced');
        await holder.release();
        await client.receives('done');
        expect(ran).toBe(1);
        await expectReleased();
      });

      it.each([
        ['if the interceptor answers itself, by an error', 'limited', 408],
        ['of a handler whose result Nest sends', 'returning', 200],
      ])('ends the wait %s', async (_, path, status) => {
        await askInVain(path);
        expect(await client.status()).toBe(status);
        await eventually(() => locks.clock.pendingTimers === 1);
        await holder.release();
        await settle();
        expect(ran).toBe(0);
      });

      it('is followed by the end of the connection if the wait ends in vain', async () => {
        await askInVain('silenced');
        await locks.clock.advance(2_000);
        await client.closed();
        expect(ran).toBe(0);
      });

      it('is followed by the answer of onLocked if the wait ends in vain', async () => {
        await askInVain('conflicts');
        await locks.clock.advance(2_000);
        expect(await client.status()).toBe(409);
      });

      it('does not make a request wait whose client leaves then', async () => {
        await askInVain('silenced');
        client.leave();
        await eventually(() => locks.clock.pendingTimers === 1);
        await holder.release();
        await settle();
        expect(ran).toBe(0);
      });
    });

    describe('with server-sent events', () => {
      it('is refused with the status and Retry-After of other handlers', async () => {
        await ask('quiet');
        await locks.clock.advance(2_000);
        expect(await client.status()).toBe(423);
        await client.receives('LOCK_NOT_ACQUIRED');
        expect(client.received).toMatch(/retry-after\W+28/i);
      });

      it('is refused with the status of an outage', async () => {
        await holder.release();
        locks.each('takeDown');
        await ask('quiet', 1);
        await locks.clock.advance(2_000);
        expect(await client.status()).toBe(503);
        locks.each('bringUp');
      });

      it('is refused with the status of onLocked', async () => {
        await ask('status');
        await locks.clock.advance(2_000);
        expect(await client.status()).toBe(409);
      });

      it.each([
        ['instead', 'data: two'],
        ['one-instead', 'data: one'],
      ])('is answered by the result of onLocked: %s', async (path, data) => {
        await ask(path);
        await locks.clock.advance(2_000);
        expect(await client.status()).toBe(200);
        await client.receives(data);
        expect(client.received).toContain('text/event-stream');
        expect(client.received).toContain('data: one');
      });

      it('begins without an event when the lock is there', async () => {
        await ask('quiet');
        await holder.release();
        expect(await client.status()).toBe(200);
        expect(client.received).toContain('text/event-stream');
        expect(locks.held).toBe(true);
        client.leave();
        await expectReleased();
      });

      it('has the status of its handler if that fails', async () => {
        await ask('missing');
        await holder.release();
        expect(await client.status()).toBe(404);
        await expectReleased();
      });
    });

    it.each(['last', 'answers'])('is answered by the last value of an Observable from onLocked: %s', async (path) => {
      await ask(path);
      await locks.clock.advance(2_000);
      await client.receives('{"data":"two"}');
      expect(client.received).not.toContain('one');
    });
  });
});

const OVER_HTTP_1 = SERVERS.filter(({ version }) => version === 1);
const OVER_HTTP_2 = SERVERS.filter(({ version }) => version === 2);

describe.each(OVER_HTTP_1)('The lock of one of several requests of a connection on $server', ({ adapter }) => {
  let server: Listening;
  let client: Connection;

  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Endings, GivenUp, Waiting] }, adapter());
    client = await open(1, server.url);
  });
  afterEach(() => client.leave());

  it.each(['plain', 'file', 'answers', 'sends-later'])(
    'ends when all was handed over, although the response waits for one that never ends: %s',
    async (path) => {
      client.send('/forever');
      await client.status();
      client.send(`/${path}`);
      await started.promise;
      await settle();
      expect(locks.masters[0]!.size).toBe(2);
      work.resolve();
      stream.end('done');
      await eventually(() => locks.masters[0]!.size === 1);
      client.leave();
      await expectReleased();
    },
  );

  it.each(['file', 'quiet', 'events'])(
    'ends when the connection closes, although it waits for its turn: %s',
    async (path) => {
      work.resolve();
      client.send('/forever');
      await client.status();
      client.send(`/${path}`);
      await eventually(() => locks.masters[0]!.size === 2);
      await settle();
      client.leave();
      await expectReleased();
      expect(events.observed).toBe(false);
    },
  );

  it('leaves nothing on a connection that is kept alive, and ends with each of them', async () => {
    work.resolve();
    let before = 0;
    for (let i = 1; i <= 20; i++) {
      client.send(i % 2 === 0 ? '/plain' : '/answers');
      await eventually(() => client.received.split('done').length > i);
      await expectReleased();
      // The first two attach what is attached once.
      if (i === 2) before = connection!.listenerCount('close');
    }
    expect(connection!.listenerCount('close')).toBe(before);
  });
});

describe.each(OVER_HTTP_2)('The lock of a request on $server', ({ adapter }) => {
  it.each(['file', 'answers', 'sends-later'])(
    'ends when all was handed over, although the client accepts no data: %s',
    async (path) => {
      const server = await listen({ imports: [locks.module()], controllers: [Endings, GivenUp, Waiting] }, adapter());
      const client = await open(2, server.url, { initialWindowSize: 0 });
      client.send(`/${path}`);
      await started.promise;
      stream.end('done');
      work.resolve();
      await expectReleased();
      expect(client.received).not.toContain('done');
      client.leave();
    },
  );
});
