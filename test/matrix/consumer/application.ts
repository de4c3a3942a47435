import { Controller, Injectable, Module, Post, type Type, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockInterceptor, LockService, RedlockModule, type RedlockModuleOptions, WithLock } from 'nestjs-redlock';

/** Something that several instances share and nobody guards but the lock. */
export const account = { balance: 0 };

@Injectable()
export class Accounts {
  constructor(readonly locks: LockService) {}

  @WithLock((id: string) => `account:${id}`, '2s')
  async deposit(id: string, amount: number): Promise<number> {
    this.locks.current(`account:${id}`)?.assertHeld();
    return depositUnlocked(amount);
  }

  @WithLock('report', '2s', { onLocked: 'skip' })
  async report(): Promise<string> {
    return 'written';
  }
}

/** Reads, lets others in, writes: an update is lost unless it is locked. */
export async function depositUnlocked(amount: number): Promise<number> {
  const before = account.balance;
  await new Promise((resolve) => setTimeout(resolve, 1));
  account.balance = before + amount;
  return account.balance;
}

@Controller('carts')
export class CartController {
  @Post('checkout')
  @UseInterceptors(LockInterceptor('cart', '2s', { wait: 0 }))
  async checkOut(): Promise<string> {
    return 'checked out';
  }
}

/** Boots one instance of an application that listens on a free port. */
export async function start(locks: RedlockModuleOptions, imports: readonly Type[] = []) {
  @Module({
    imports: [RedlockModule.forRoot({ ttl: '2s', maxTtl: '2s', ...locks }), ...imports],
    providers: [Accounts],
    controllers: [CartController],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule);
  app.useLogger(false);
  await app.listen(0, '127.0.0.1');
  return app;
}
