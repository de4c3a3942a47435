import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import { LockInterceptor } from 'nestjs-redlock';
import { boot, closeAll, externally, listen } from './support/applications.js';
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

  it('locks a handler that is run by its own call, which does not wait for it', async () => {
    const ran: string[] = [];
    const inner: Promise<unknown>[] = [];
    let run: (id: number) => Promise<unknown> = () => Promise.reject(new Error('not made yet'));
    @Injectable()
    class Nodes {
      @UseInterceptors(LockInterceptor((context) => `node:${context.getArgByIndex<number>(0)}`))
      async run(id: number): Promise<void> {
        if (id === 1) inner.push(ended.then(() => run(2)));
        ran.push(`${id}`);
      }
    }
    const app = await boot({ imports: [new Locks().module()], providers: [Nodes] });
    run = externally(app, app.get(Nodes), 'bot');
    const outer = run(1);
    const ended = outer.then(() => undefined);
    await outer;
    await Promise.all(inner);
    expect(ran).toEqual(['1', '2']);
  });
});
