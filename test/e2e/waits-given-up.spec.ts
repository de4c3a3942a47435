import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type NestInterceptor, RequestTimeoutException, Res, UseInterceptors } from '@nestjs/common';
import { type Lock, LockInterceptor, type LockInterceptorOptions, LockService } from 'nestjs-redlock';
import { catchError, merge, of, Subject } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { listen } from './support/applications.js';
import { settle } from './support/deferred.js';
import { type Connection, open } from './support/http-clients.js';
import { SERVERS } from './support/http-servers.js';
import { LocksPerTest } from './support/locks.js';

const locks = new LocksPerTest();
let giveUp: Subject<unknown>;
let ran: number;

const Failing: NestInterceptor = { intercept: (_, next) => merge(next.handle(), giveUp) };
const Silenced: NestInterceptor = {
  intercept: (_, next) => merge(next.handle(), giveUp).pipe(catchError(() => of(undefined))),
};
const locked = (options?: LockInterceptorOptions) =>
  LockInterceptor('response', { ttl: '10s', wait: '5s', ...options });

interface Response {
  send(body: string): void;
}

@Controller()
class Answering {
  @Get('silenced')
  @UseInterceptors(Silenced, locked())
  silenced(@Res() response: Response): void {
    ran++;
    response.send('done');
  }

  @Get('failing')
  @UseInterceptors(Failing, locked())
  failing(@Res() response: Response): void {
    this.silenced(response);
  }

  @Get('conflicts')
  @UseInterceptors(Silenced, locked({ onLocked: { status: 409 } }))
  conflicts(@Res() response: Response): void {
    this.silenced(response);
  }

  @Get('returning')
  @UseInterceptors(Silenced, locked())
  returning(): void {
    ran++;
  }
}

beforeEach(() => {
  giveUp = new Subject();
  ran = 0;
});

describe.each(SERVERS)(
  'On $server, an interceptor that gives up during the wait for the lock',
  ({ version, adapter }) => {
    let client: Connection;
    afterEach(() => client.leave());

    /** Resolves with the holder that the request waits for. */
    async function waiting(path: string): Promise<Lock> {
      const server = await listen({ imports: [locks.module()], controllers: [Answering] }, adapter());
      const holder = await server.app.get(LockService).acquire('response', '30s');
      client = await open(version, server.url);
      client.send(path);
      await eventually(() => locks.clock.pendingTimers > 1);
      giveUp.error(new RequestTimeoutException());
      await settle();
      return holder;
    }

    it('does not leave the client without an answer: a handler that has the response still runs in its turn', async () => {
      const holder = await waiting('/silenced');
      await holder.release();
      await client.receives('done');
      expect(ran).toBe(1);
      await eventually(() => !locks.held);
    });

    it('ends the wait if it answers itself: by an error', async () => {
      const holder = await waiting('/failing');
      expect(await client.status()).toBe(408);
      await eventually(() => locks.clock.pendingTimers === 1);
      await holder.release();
      await settle();
      expect(ran).toBe(0);
    });

    it('ends the wait of a handler whose result Nest sends', async () => {
      const holder = await waiting('/returning');
      expect(await client.status()).toBe(200);
      await holder.release();
      await settle();
      expect(ran).toBe(0);
    });

    it('is followed by the end of the connection if the wait ends in vain', async () => {
      const holder = await waiting('/silenced');
      await locks.clock.advance(5_000);
      await client.closed();
      await holder.release();
      expect(ran).toBe(0);
    });

    it('is followed by the answer of onLocked if the wait ends in vain', async () => {
      const holder = await waiting('/conflicts');
      await locks.clock.advance(5_000);
      expect(await client.status()).toBe(409);
      await holder.release();
    });

    it('does not make a request wait whose client leaves then', async () => {
      const holder = await waiting('/silenced');
      client.leave();
      await eventually(() => locks.clock.pendingTimers === 1);
      await holder.release();
      await settle();
      expect(ran).toBe(0);
    });
  },
);
