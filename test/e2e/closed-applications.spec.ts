import { expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockInterceptor, RedlockModule, WithLock } from 'nestjs-redlock';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../support/eventually.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

@Injectable()
class Orders {
  @WithLock('order')
  async ship(): Promise<void> {}
}

@Controller()
@UseInterceptors(LockInterceptor('request'))
class Requests {
  @Get()
  async get(): Promise<void> {}
}

async function closedApplication(): Promise<WeakRef<Orders>> {
  const imports = [RedlockModule.forRoot({ masters: 'memory' })];
  const app = await Test.createTestingModule({ imports, providers: [Orders], controllers: [Requests] }).compile();
  await app.init();
  const orders = app.get(Orders);
  await orders.ship();
  await app.close();
  return new WeakRef(orders);
}

it('Nothing of an application is kept after it has closed', async () => {
  const closed = [await closedApplication(), await closedApplication(), await closedApplication()];
  await eventually(() => {
    collectGarbage();
    // The last one may be in the registers of this function.
    return closed.filter((orders) => orders.deref() !== undefined).length <= 1;
  });
  expect(closed).toHaveLength(3);
});
