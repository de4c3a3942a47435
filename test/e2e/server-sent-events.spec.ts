import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, NotFoundException, Res, Sse, UseInterceptors } from '@nestjs/common';
import {
  type Lock,
  LockExceptionFilter,
  LockInterceptor,
  type LockInterceptorOptions,
  LockService,
} from 'nestjs-redlock';
import { from, NEVER, type Observable } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { listen, type Listening } from './support/applications.js';
import { type Connection, open } from './support/http-clients.js';
import { SERVERS } from './support/http-servers.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest(3);

const Locked = (options: LockInterceptorOptions = {}) =>
  UseInterceptors(LockInterceptor('events', { ttl: '10s', wait: '2s', ...options }));
const several = (): Observable<unknown> => from([{ data: 'one' }, { data: 'two' }]);

@Controller()
class Events {
  @Sse('quiet')
  @Locked()
  quiet(): Observable<unknown> {
    return NEVER;
  }

  @Sse('missing')
  @Locked()
  async missing(): Promise<Observable<unknown>> {
    await Promise.resolve();
    throw new NotFoundException();
  }

  @Sse('status')
  @Locked({ onLocked: { status: 409 } })
  status(): Observable<unknown> {
    return NEVER;
  }

  @Sse('instead')
  @Locked({ onLocked: several })
  instead(): Observable<unknown> {
    return NEVER;
  }

  @Sse('one-instead')
  @Locked({ onLocked: () => ({ data: 'one' }) })
  oneInstead(): Observable<unknown> {
    return NEVER;
  }

  @Get('last')
  @Locked({ onLocked: several })
  last(): void {}

  @Get('answers')
  @Locked({ onLocked: several })
  answers(@Res() _: unknown): void {}
}

describe.each(SERVERS)('Server-sent events that wait for their lock on $server', ({ version, adapter }) => {
  let server: Listening;
  let client: Connection;
  let other: Lock;

  beforeEach(async () => {
    server = await listen({ imports: [locks.module()], controllers: [Events] }, adapter(), (app) =>
      app.useGlobalFilters(new LockExceptionFilter()),
    );
    client = await open(version, server.url);
    other = await server.app.get(LockService).acquire('events', '30s');
  });
  afterEach(async () => {
    client.leave();
    await other.release();
  });

  /** Waits longer than Nest does before it sends the headers. */
  async function ask(path: string, timers = 2): Promise<void> {
    client.send(path);
    await eventually(() => locks.clock.pendingTimers >= timers);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(client.received).toBe('');
  }

  it('are refused with the status and Retry-After of other handlers', async () => {
    await ask('/quiet');
    await locks.clock.advance(2_000);
    expect(await client.status()).toBe(423);
    await client.receives('LOCK_NOT_ACQUIRED');
    expect(client.received).toMatch(/retry-after\W+28/i);
  });

  it('are refused with the status of an outage', async () => {
    await other.release();
    locks.each('takeDown');
    await ask('/quiet', 1);
    await locks.clock.advance(2_000);
    expect(await client.status()).toBe(503);
    locks.each('bringUp');
  });

  it('are refused with the status of onLocked', async () => {
    await ask('/status');
    await locks.clock.advance(2_000);
    expect(await client.status()).toBe(409);
  });

  it.each([
    ['instead', 'data: two'],
    ['one-instead', 'data: one'],
  ])('are replaced by the result of onLocked: %s', async (path, data) => {
    await ask(`/${path}`);
    await locks.clock.advance(2_000);
    expect(await client.status()).toBe(200);
    await client.receives(data);
    expect(client.received).toContain('text/event-stream');
    expect(client.received).toContain('data: one');
  });

  it.each(['last', 'answers'])(
    'are not needed for an Observable from onLocked, whose last value is sent: %s',
    async (path) => {
      client.send(`/${path}`);
      await eventually(() => locks.clock.pendingTimers >= 2);
      await locks.clock.advance(2_000);
      await client.receives('{"data":"two"}');
      expect(client.received).not.toContain('one');
    },
  );

  it('begin without an event when the lock is there', async () => {
    await ask('/quiet');
    await other.release();
    expect(await client.status()).toBe(200);
    expect(client.received).toContain('text/event-stream');
    expect(locks.held).toBe(true);
    client.leave();
    await eventually(() => !locks.held);
  });

  it('have the status of their handler if that fails', async () => {
    await ask('/missing');
    await other.release();
    expect(await client.status()).toBe(404);
    await eventually(() => !locks.held);
  });
});
