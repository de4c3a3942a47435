import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, UseInterceptors } from '@nestjs/common';
import { LockInterceptor, LockOrderError, LockService, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';
import { boot, closeAll, listen, logs } from './support/applications.js';
import { Locks } from './support/locks.js';

afterEach(closeAll);

@Injectable()
class Accounts {
  @WithLock((id: string) => `account:${id}`)
  async debit(id: string): Promise<string> {
    return `debited ${id}`;
  }
}

@Injectable()
class Orders {
  constructor(
    @Inject(Accounts) private readonly accounts: Accounts,
    @Inject(LockService) private readonly locks: LockService,
  ) {}

  @WithLock((id: string) => `order:${id}`)
  ship(id: string): Promise<string> {
    return this.accounts.debit(id);
  }

  @WithLock((id: string) => [`order:${id}`, `account:${id}`])
  async settle(id: string): Promise<string> {
    return `settled ${id}`;
  }

  @WithLock((id: string) => `account:${id}`)
  cancel(id: string): Promise<string> {
    return this.locks.withLock(`order:${id}`, async () => 'cancelled');
  }
}

@Controller()
class Shop {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @Get()
  @UseInterceptors(LockInterceptor('account:1'))
  buy(): Promise<string> {
    return this.locks.withLock('order:1', async () => 'bought');
  }
}

const CYCLE =
  'lock order: "account:8" (@WithLock on Orders.cancel) is held while "order:8" is waited for, and "order:7" ' +
  '(@WithLock on Orders.ship) is held while "account:7" (@WithLock on Accounts.debit) is waited for. Such calls can wait ' +
  'for each other until their budgets end: take these locks in one order, or together in one call (see lockOrder)';

function module(options: Partial<RedlockModuleOptions> = {}) {
  return { imports: [new Locks(1, options).module()], providers: [Accounts, Orders], controllers: [Shop] };
}

function warnings(): readonly string[] {
  return logs.filter((line) => line.includes('lock order'));
}

describe('Methods that nest two locks in different orders', () => {
  it('are named in one warning, and run', async () => {
    const orders = (await boot(module())).get(Orders);
    expect(await orders.ship('7')).toBe('debited 7');
    expect(warnings()).toEqual([]);
    expect([await orders.cancel('8'), await orders.cancel('9')]).toEqual(['cancelled', 'cancelled']);
    expect(warnings()).toEqual([`warn ${CYCLE}`]);
  });

  it(`fail with lockOrder: 'error', each time`, async () => {
    const orders = (await boot(module({ lockOrder: 'error' }))).get(Orders);
    await orders.ship('7');
    for (let call = 0; call < 2; call++)
      await expect(orders.cancel('8')).rejects.toThrow(new LockOrderError([], CYCLE));
    expect(await orders.ship('7')).toBe('debited 7');
  });

  it(`run without a warning with lockOrder: 'off'`, async () => {
    const orders = (await boot(module({ lockOrder: 'off' }))).get(Orders);
    expect([await orders.ship('7'), await orders.cancel('8')]).toEqual(['debited 7', 'cancelled']);
    expect(warnings()).toEqual([]);
  });

  it('include the handlers of an interceptor', async () => {
    const { app, url } = await listen(module());
    await app.get(Orders).ship('7');
    expect(await (await fetch(url)).text()).toBe('bought');
    expect(warnings()).toEqual([expect.stringContaining('"account:1" (LockInterceptor on Shop.buy) is held while')]);
  });
});

it('A method that nests a lock and one that takes both at once do not wait for each other', async () => {
  const orders = (await boot(module({ lockOrder: 'error' }))).get(Orders);
  expect(await Promise.all([orders.ship('7'), orders.settle('7')])).toEqual(['debited 7', 'settled 7']);
});

it.each([
  [{ lockOrder: 'of' }, `lockOrder must be 'off', 'warn' or 'error', got "of"`],
  [{ lockOrder: false }, `lockOrder must be 'off', 'warn' or 'error', got false`],
  [{ lockorder: 'off' }, 'did you mean lockOrder?'],
])('The boot refuses %j', async (options, message) => {
  const given = options as Partial<RedlockModuleOptions>;
  await expect((async () => boot(module(given)))()).rejects.toThrow(message);
});
