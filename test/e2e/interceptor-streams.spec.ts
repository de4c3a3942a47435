import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Res, Sse, StreamableFile, UseInterceptors } from '@nestjs/common';
import { LockInterceptor } from 'nestjs-redlock';
import { ManualClock } from 'nestjs-redlock/testing';
import { once } from 'node:events';
import { get as request, type IncomingMessage, type ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { from, type Observable, Subject } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { ADAPTERS } from './support/adapters.js';
import { closeAll, listen, type Listening } from './support/applications.js';
import { type Deferred, deferred } from './support/deferred.js';
import { Locks } from './support/locks.js';

let clock: ManualClock;
let locks: Locks;
let stream: PassThrough;
let events: Subject<unknown>;
let setUp: Deferred<Observable<unknown>>;

beforeEach(() => {
  clock = new ManualClock();
  locks = new Locks(3, { clock });
  [stream, events, setUp] = [new PassThrough(), new Subject(), deferred()];
});
afterEach(async () => {
  await closeAll();
  await locks.expectNothingLeft();
  expect(clock.pendingTimers).toBe(0);
});

type PlatformResponse = ServerResponse & { raw?: ServerResponse; hijack?: () => void };

@Controller()
@UseInterceptors(LockInterceptor('stream', { ttl: '10s', wait: 0 }))
class Streams {
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

  @Get('given-back')
  givenBack(@Res() response: PlatformResponse): unknown {
    response.hijack?.();
    return stream.pipe(response.raw ?? response);
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

  private constructor(
    readonly response: IncomingMessage,
    private readonly end: () => void,
  ) {
    response.on('error', () => undefined);
    response.on('data', (chunk: Buffer) => (this.received += chunk.toString()));
  }

  static async get(url: string): Promise<Client> {
    const sent = request(url, { agent: false });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return new Client(response, () => sent.destroy());
  }

  /** Resolves when this string has arrived. */
  async receives(text: string): Promise<void> {
    if (!this.received.includes(text)) await this.hears(text);
  }

  private hears(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.response.on('data', () => {
        if (this.received.includes(text)) resolve();
      });
    });
  }

  /** Resolves when nothing more can arrive, with whether the response was complete. */
  async closed(): Promise<boolean> {
    if (!this.response.closed) await new Promise((resolve) => this.response.once('close', resolve));
    return this.response.complete;
  }

  leave(): void {
    this.end();
  }
}

describe.each(ADAPTERS)('LockInterceptor on $platform keeps the lock', ({ adapter }) => {
  let server: Listening;
  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Streams] }, adapter());
  });

  const open = (path: string) => Client.get(`${server.url}/${path}`);

  async function loseIt(): Promise<void> {
    locks.masters.forEach((master) => master.pause());
    await clock.advance(10_000);
    locks.masters.forEach((master) => master.resume());
    locks.masters.forEach((master) => master.flush());
  }

  describe.each(['file', 'later', 'manual', 'given-back'])('of a handler that streams: %s', (path) => {
    it('until the response has ended', async () => {
      stream.write('first');
      const client = await open(path);
      await client.receives('first');
      await clock.advance(60_000);
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
      await eventually(() => !locks.held);
      stream.destroy();
    });

    it('or aborts the response when the lock is lost, so that a part cannot pass for the whole', async () => {
      stream.write('first');
      const client = await open(path);
      await client.receives('first');
      await loseIt();
      expect(await client.closed()).toBe(false);
      stream.destroy();
    });
  });

  describe('of server-sent events', () => {
    it('until they are complete', async () => {
      const client = await open('events');
      await eventually(() => events.observed);
      events.next({ data: 'one' });
      await client.receives('data: one');
      await clock.advance(60_000);
      expect(locks.held).toBe(true);
      events.complete();
      expect(await client.closed()).toBe(true);
      await eventually(() => !locks.held);
    });

    it('until the client has disconnected, and ends the Observable', async () => {
      const client = await open('events');
      await eventually(() => events.observed);
      events.next({ data: 'one' });
      await client.receives('data: one');
      expect(locks.held).toBe(true);
      client.leave();
      await eventually(() => !events.observed);
      await eventually(() => !locks.held);
    });

    it('until the client has disconnected before the first of them', async () => {
      const client = await open('events');
      await eventually(() => events.observed);
      expect(locks.held).toBe(true);
      client.leave();
      await eventually(() => !events.observed);
      await eventually(() => !locks.held);
    });

    it('while a promise sets them up', async () => {
      const opening = open('events-later');
      await eventually(() => locks.held);
      await clock.advance(60_000);
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
      await loseIt();
      await client.receives('event: error');
      expect(events.observed).toBe(false);
      await client.closed();
    });
  });
});
