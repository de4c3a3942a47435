import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Body, Controller, type ExecutionContext, Injectable, Post, UseInterceptors } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { ADAPTERS } from './support/adapters.js';
import { boot, closeAll, listen, logs } from './support/applications.js';
import { Locks } from './support/locks.js';

interface Request {
  readonly body: { readonly order?: { readonly id?: unknown } };
}

const bodyOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().body;

/** What a key function gives that trusts a request. */
const trusted = (value: unknown): string => value as string;

let locks: Locks;
let handled: number;

beforeEach(() => {
  locks = new Locks();
  handled = 0;
});
afterEach(async () => {
  await closeAll();
  await locks.expectNothingLeft();
});

@Controller('orders')
class Orders {
  @Post('named')
  @UseInterceptors(LockInterceptor((context) => `order:${trusted(bodyOf(context).order?.id)}`))
  named(): void {
    handled++;
  }

  @Post('bare')
  @UseInterceptors(LockInterceptor((context) => trusted(bodyOf(context).order?.id)))
  bare(): void {
    handled++;
  }

  @Post('careless')
  @UseInterceptors(
    LockInterceptor((context) => `order:${trusted((bodyOf(context) as Required<Request['body']>).order.id)}`),
  )
  careless(): void {
    handled++;
  }

  @Post('decorated')
  @WithLock((body: Request['body']) => `order:${trusted(body.order?.id)}`)
  async decorated(@Body() _: Request['body']): Promise<void> {
    handled++;
  }
}

describe.each(ADAPTERS)('A request on $platform', ({ adapter }) => {
  async function post(path: string, body: unknown) {
    const { url } = await listen({ imports: [locks.module()], controllers: [Orders] }, adapter());
    logs.length = 0;
    const response = await fetch(`${url}/orders/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  }

  it.each([
    ['lacks a field', 'named', {}, 'must not contain undefined: a value that the name is made of is missing'],
    ['has an object in place of an id', 'named', { order: { id: {} } }, 'must not contain [object Object]: '],
    ['lacks the whole key', 'bare', {}, 'must be a non-empty string or a non-empty array of them, got undefined'],
    ['has an empty key', 'bare', { order: { id: '' } }, 'must be a non-empty string or a non-empty array of them'],
    ['has a number in place of a string', 'bare', { order: { id: 7 } }, 'must be a non-empty string'],
    ['has half a character', 'named', { order: { id: '\ud800' } }, 'must not contain half a surrogate pair'],
  ])('that %s gets 400, with a line at debug level', async (_, path, body, requirement) => {
    expect(await post(path, body)).toEqual({ status: 400, body: { statusCode: 400, message: 'Bad Request' } });
    expect(handled).toBe(0);
    expect(logs).toEqual([expect.stringContaining(`debug LockInterceptor on Orders.${path}: key ${requirement}`)]);
    expect(logs[0]).toMatch(
      /\. The client gets 400 Bad Request: if its request was complete, check what the key function reads$/,
    );
  });

  it('with all fields runs', async () => {
    expect(await post('named', { order: { id: '7' } })).toMatchObject({ status: 201 });
    expect(handled).toBe(1);
  });

  it('gets 500 if the key function throws an error of its own, which is logged as any other', async () => {
    expect(await post('careless', {})).toMatchObject({ status: 500 });
    expect(logs).toEqual([expect.stringMatching(/^error Cannot read properties of undefined/)]);
  });

  it('gets 500 for an invalid key of @WithLock, whose method has other callers than requests', async () => {
    expect(await post('decorated', {})).toMatchObject({ status: 500 });
    expect(handled).toBe(0);
    expect(logs).toEqual([
      'error @WithLock on Orders.decorated: key must not contain undefined: a value that the name is made of is ' +
        'missing, got "order:undefined"',
    ]);
  });
});

describe('An invalid key in a handler that another package runs', () => {
  it.each([
    ['graphql', 'BadRequestException'],
    ['queue', 'RedlockConfigError'],
    ['http', 'RedlockConfigError'],
  ])('fails a handler of the type %s with %s', async (type, name) => {
    @Injectable()
    @UseInterceptors(LockInterceptor((context) => `job:${context.getArgByIndex<string>(0)}`))
    class Jobs {
      readonly run = async (...ids: unknown[]): Promise<unknown> => Promise.resolve(ids);
    }
    const app = await boot({ imports: [locks.module()], providers: [Jobs] });
    const jobs = app.get(Jobs);
    const enhancers = { guards: true, interceptors: true, filters: true };
    const run = app
      .get(ExternalContextCreator)
      .create(jobs, jobs.run, 'run', undefined, undefined, undefined, undefined, enhancers, type);
    await expect(run(undefined)).rejects.toMatchObject({ name });
  });
});
