import { Controller, Injectable, Module, Post, type Type, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockInterceptor, LockService, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';

/** A balance that several instances share and that only the lock protects. */
export const account = { balance: 0 };

@Injectable()
export class Accounts {
  constructor(readonly locks: LockService) {}

  @WithLock((id: string) => `account:${id}`, '4s')
  async deposit(id: string, amount: number): Promise<number> {
    this.locks.current(`account:${id}`)?.assertHeld();
    return depositUnlocked(amount);
  }

  @WithLock('report', { ttl: '4s', onLocked: 'skip' })
  async report(): Promise<string | undefined> {
    return 'written';
  }
}

/** Reads, yields to others, writes: without a lock, an update is lost. */
export async function depositUnlocked(amount: number): Promise<number> {
  const before = account.balance;
  await new Promise((resolve) => setTimeout(resolve, 1));
  account.balance = before + amount;
  return account.balance;
}

@Controller('carts')
export class CartController {
  @Post('checkout')
  @UseInterceptors(LockInterceptor('cart', { ttl: '4s', wait: 0 }))
  async checkOut(): Promise<string> {
    return 'checked out';
  }
}

/**
 * Settings for a busy machine, on which masters may take a second to answer. New servers wait for the ttl before they
 * vote, so the first locks have to wait.
 */
const PATIENT = { ttl: '4s', masterTimeout: '1s', wait: '20s' } as const;

/** Boots one instance of an application on a free port. */
export async function start(locks: RedlockModuleOptions, imports: readonly Type[] = []) {
  @Module({
    imports: [RedlockModule.forRoot({ ...PATIENT, ...locks }), ...imports],
    providers: [Accounts],
    controllers: [CartController],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule);
  app.useLogger(false);
  await app.listen(0, '127.0.0.1');
  return app;
}
