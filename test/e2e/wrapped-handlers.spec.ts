import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Param, UseInterceptors } from '@nestjs/common';
import { LockInterceptor } from 'nestjs-redlock';
import { closeAll, listen } from './support/applications.js';
import { Locks } from './support/locks.js';

afterEach(closeAll);

/** As the decorators of tracing libraries do it: metadata of the method stays reachable. */
const Traced: MethodDecorator = (_target, _name, descriptor) => {
  const method = descriptor.value as unknown as (...args: unknown[]) => unknown;
  const traced = new Proxy(method, {
    // Not by `Reflect.apply`, as some do it.
    apply: (target, self, args: unknown[]) => target.apply(self, args),
  });
  Object.assign(descriptor, { value: traced });
};

describe('LockInterceptor', () => {
  it('locks a handler for which a decorator has put a Proxy', async () => {
    const locks = new Locks();
    @Controller()
    class Carts {
      @Get()
      @UseInterceptors(LockInterceptor('cart'))
      @Traced
      async read(): Promise<string> {
        return locks.held ? 'locked' : 'not locked';
      }
    }
    const { url } = await listen({ imports: [locks.module()], controllers: [Carts] });
    expect(await (await fetch(url)).text()).toBe('locked');
  });

  it('locks a handler that is asked by its own call, which does not wait for it', async () => {
    const locks = new Locks();
    const inner: Promise<Response>[] = [];
    let url = '';
    @Controller()
    class Nodes {
      @Get(':id')
      @UseInterceptors(
        LockInterceptor((context) => `node:${context.getArgByIndex<{ params: { id: string } }>(0).params.id}`),
      )
      async visit(@Param('id') id: string): Promise<string> {
        if (id === '1') inner.push(fetch(`${url}/2`));
        return locks.held ? `locked ${id}` : `not locked ${id}`;
      }
    }
    ({ url } = await listen({ imports: [locks.module()], controllers: [Nodes] }));
    expect(await (await fetch(`${url}/1`)).text()).toBe('locked 1');
    expect(await (await inner[0]!).text()).toBe('locked 2');
  });
});
