import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import * as common from '@nestjs/common';
import {
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Get,
  type NestInterceptor,
  Param,
  type PipeTransform,
  RequestTimeoutException,
  Res,
  Sse,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { LockInterceptor, LockService } from 'nestjs-redlock';
import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { catchError, merge, NEVER, Observable, of, Subject, take } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { listen, type Listening } from './support/applications.js';
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
class Endings {
  @Get('plain')
  @UseInterceptors(Locked)
  async plain(): Promise<string> {
    started.resolve();
    await work.promise;
    return 'done';
  }

  @Get('file')
  @UseInterceptors(Locked)
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
  @UseInterceptors(Locked)
  generatedFile(): StreamableFile {
    return new StreamableFile(Readable.from(this.parts()));
  }

  @Get('yielding')
  @UseInterceptors(Locked)
  yielding(): AsyncGenerator {
    return this.parts();
  }

  @Get('yielding-later')
  @UseInterceptors(Locked)
  async yieldingLater(): Promise<AsyncGenerator> {
    return Promise.resolve(this.parts());
  }

  @Get('observed-file')
  @UseInterceptors(Locked)
  observedFile(): Observable<unknown> {
    return new Observable((subscriber) => {
      void this.plain().then(() => {
        subscriber.next(new StreamableFile(stream));
        subscriber.complete();
      });
    });
  }

  @Get('answers')
  @UseInterceptors(Locked)
  async answers(@Res() response: Raw & { send(body: string): void }): Promise<void> {
    await this.plain();
    response.send('done');
  }

  /** An import that reports its progress, and does not depend on the client. */
  @Get('progress')
  @UseInterceptors(Locked)
  async progress(@Res() response: Raw): Promise<void> {
    response.hijack?.();
    rawOf(response).on('error', () => undefined);
    rawOf(response).write('progress');
    await this.plain();
    rawOf(response).end('done');
  }

  @Get('silenced')
  @UseInterceptors(Silenced, Locked)
  silenced(@Res() response: Raw): Promise<void> {
    return this.progress(response);
  }

  @Get('limited')
  @UseInterceptors(TimeLimit, Locked)
  limited(): Promise<string> {
    return this.plain();
  }

  @Get('limited-inside')
  @UseInterceptors(Locked, TimeLimit)
  limitedInside(): Promise<string> {
    return this.plain();
  }

  @Get('piped/:id')
  @UseInterceptors(TimeLimit, Locked)
  async piped(@Param('id', WaitingPipe) _: string): Promise<void> {
    ran++;
    await work.promise;
  }

  @Get('piped-inside/:id')
  @UseInterceptors(Locked, TimeLimit)
  pipedInside(@Param('id', WaitingPipe) id: string): Promise<void> {
    return this.piped(id);
  }

  @Get('hidden')
  @UseInterceptors(Locked)
  async hidden(@Response() response: ServerResponse): Promise<void> {
    response.write('progress');
    await this.plain();
  }

  @Get('early')
  @UseInterceptors(Locked)
  async early(@Res() response: Raw): Promise<void> {
    response.hijack?.();
    rawOf(response).end('accepted');
    await this.plain();
  }

  /** The handler returns, and the response goes on. */
  @Get('live')
  @UseInterceptors(Locked)
  live(@Res() response: Raw): void {
    response.hijack?.();
    rawOf(response).write('progress');
    stream.pipe(rawOf(response));
    started.resolve();
  }

  @Get('sends-later')
  @UseInterceptors(Locked)
  sendsLater(@Res() response: Raw): void {
    response.hijack?.();
    void this.plain().then(() => rawOf(response).end('done'));
  }

  /** Nothing declares that it returns an Observable. */
  @Get('quiet')
  @UseInterceptors(Locked)
  async quiet(): Promise<unknown> {
    return Promise.resolve(events);
  }

  @Sse('events')
  @UseInterceptors(Locked)
  events(): Observable<unknown> {
    return events;
  }

  @Sse('events-later')
  @UseInterceptors(Locked)
  async eventsLater(): Promise<Observable<unknown>> {
    await this.plain();
    return events;
  }

  @Sse('forever')
  @UseInterceptors(Locked)
  forever(): Observable<unknown> {
    return NEVER;
  }
}

/** Nest 12 streams what a handler yields; Nest 11 does not. */
const YIELDING = 'StandardSchemaValidationPipe' in common ? ['yielding', 'yielding-later'] : [];

describe.each(SERVERS)('The lock of a request on $server', ({ version, adapter }) => {
  let server: Listening;
  let client: Connection;

  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Endings] }, adapter());
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

    it.each(['plain', 'file', 'answers', 'progress', 'events-later', 'sends-later'])(
      'is held while the handler runs, and no longer: %s',
      async (path) => {
        client.send(`/${path}`);
        if (path === 'progress') await client.receives('progress');
        await started.promise;
        await leave();
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

    it.each(['live', 'file', 'observed-file'])('ends although nothing more is written: %s', async (path) => {
      work.resolve();
      client.send(`/${path}`);
      stream.write('progress');
      await client.receives('progress');
      await expectHeld();
      await leave();
      await expectReleased();
    });

    it.each(['quiet', 'events', 'events-later'])('ends with an Observable that emits nothing: %s', async (path) => {
      work.resolve();
      client.send(`/${path}`);
      await eventually(() => events.observed);
      await expectHeld();
      await leave();
      await expectReleased();
      expect(events.observed).toBe(false);
    });

    it('is not waited for', async () => {
      const other = await server.app.get(LockService).acquire('response', '30s');
      client.send('/plain');
      await eventually(() => locks.clock.pendingTimers > 1);
      await leave();
      await eventually(() => locks.clock.pendingTimers === 1);
      await other.release();
      expect(locks.held).toBe(false);
    });
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

  it('closes the connection of a response that is being written when it is lost', async () => {
    client.send('/live');
    await client.receives('progress');
    await locks.lose();
    await client.closed();
    expect(client.received).not.toContain('done');
  });
});

const OVER_HTTP_1 = SERVERS.filter(({ version }) => version === 1);
const OVER_HTTP_2 = SERVERS.filter(({ version }) => version === 2);

describe.each(OVER_HTTP_1)('The lock of one of several requests of a connection on $server', ({ adapter }) => {
  let server: Listening;
  let client: Connection;

  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Endings] }, adapter());
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
      const server = await listen({ imports: [locks.module()], controllers: [Endings] }, adapter());
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
