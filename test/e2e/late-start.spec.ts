import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Param, type PipeTransform, Sse, UseInterceptors } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import { LockInterceptor, LockService, QuorumUnavailableError, WithLock } from 'nestjs-redlock';
import { ManualClock } from 'nestjs-redlock/testing';
import { concat, defer, from, type Observable } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { ADAPTERS } from './support/adapters.js';
import { boot, closeAll, listen } from './support/applications.js';
import { Locks } from './support/locks.js';

const TTL = 1_000;
const OPTIONS = { ttl: TTL, wait: '1m' } as const;

let clock: ManualClock;
let locks: Locks;
/** For how long each lock could be relied on when its work began. */
let left: number[];

beforeEach(() => {
  clock = new ManualClock();
  locks = new Locks(3, { clock });
  left = [];
});
afterEach(async () => {
  await closeAll();
  await locks.expectNothingLeft();
  expect(clock.pendingTimers).toBe(0);
});

/** Blocks the process for longer than any of the locks lasts. */
function work(lock: { remaining(): number } | undefined): void {
  left.push(lock?.remaining() ?? -1);
  clock.stall(2 * TTL);
}

function expectAllHeld(count: number): void {
  expect(left).toHaveLength(count);
  for (const remaining of left) expect(remaining).toBeGreaterThan(TTL / 2);
}

const resourceOf = (context: ExecutionContext): string =>
  context.switchToHttp().getRequest<{ params: { name: string } }>().params.name;

/** A pipe that needs a few reactions, but no turn of the event loop. */
class SlowPipe implements PipeTransform<string> {
  async transform(value: string): Promise<string> {
    await Promise.resolve();
    return value;
  }
}

@Controller()
@UseInterceptors(LockInterceptor(resourceOf, OPTIONS))
class Handlers {
  constructor(private readonly locks: LockService) {}

  @Get('value/:name')
  async value(@Param('name', SlowPipe) name: string): Promise<string> {
    work(this.locks.current());
    return name;
  }

  @Get('stream/:name')
  stream(@Param('name') name: string): Observable<string> {
    work(this.locks.current());
    return from([name]);
  }

  @Sse('events/:name')
  events(@Param('name') name: string): Observable<unknown> {
    const blocking = defer(() => {
      work(this.locks.current());
      return [];
    });
    return concat(blocking, [{ data: name }]);
  }
}

describe.each(ADAPTERS)('A handler on $platform', ({ adapter }) => {
  it.each(['value', 'stream', 'events'])(
    'never begins under a lock that ended while another handler blocked the process: %s',
    async (kind) => {
      const { app, url } = await listen({ imports: [locks.module()], controllers: [Handlers] }, adapter());
      const service = app.get(LockService);
      const names = ['a', 'b', 'c'];
      const held = await Promise.all(names.map((name) => service.acquire(name, { ttl: '30s' })));
      const responses = names.map((name) => fetch(`${url}/${kind}/${name}`).then((response) => response.text()));
      await eventually(() => service.ownLocks(10).waiting.locks.length === names.length);
      // All three are passed on in one turn.
      for (const lock of held) void lock.release();
      await Promise.all(responses);
      await clock.settle();
      expectAllHeld(names.length);
    },
  );
});

@Injectable()
class Methods {
  constructor(private readonly locks: LockService) {}

  @WithLock((name: string) => name, OPTIONS)
  async run(name: string): Promise<void> {
    work(this.locks.current(name));
    await Promise.resolve();
  }

  @WithLock((name: string) => name, { ttl: TTL, onLocked: 'skip' })
  async skip(name: string): Promise<number | undefined> {
    work(this.locks.current(name));
    return Promise.resolve(1);
  }
}

describe('A method under @WithLock', () => {
  it('never begins under a lock that ended while another method blocked the process', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Methods] });
    const methods = app.get(Methods);
    const calls = ['a', 'b', 'c'].map((name) => methods.run(name));
    await Promise.allSettled(calls);
    expectAllHeld(3);
  });

  it('does not begin, and is not skipped in silence, if it does not wait', async () => {
    const app = await boot({ imports: [locks.module()], providers: [Methods] });
    const methods = app.get(Methods);
    const [, second] = await Promise.allSettled([methods.skip('a'), methods.skip('b')]);
    expect(second).toMatchObject({ status: 'rejected', reason: expect.any(QuorumUnavailableError) });
    expectAllHeld(1);
  });
});
