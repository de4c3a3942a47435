import { Controller, UseFilters, UseInterceptors } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { LockExceptionFilter, LockInterceptor, WithLock } from 'nestjs-redlock';
import { Bank } from './bank.js';

export interface Booking {
  account: string;
  amount: number;
}

export interface Receipt {
  booked: number;
}

const keyOf = ({ account }: Booking): string => `account:${account}`;

@Controller()
@UseFilters(LockExceptionFilter)
export class AccountsController {
  constructor(private readonly bank: Bank) {}

  /** Waits for its turn. The key function receives the arguments, so the payload must be the first one. */
  @MessagePattern('accounts.deposit')
  @WithLock(keyOf, '2s')
  async deposit(@Payload() { account, amount }: Booking): Promise<Receipt> {
    await this.bank.book(account, amount);
    return { booked: amount };
  }

  /**
   * Does not wait: the caller gets an error at once. An interceptor locks before pipes run, and until the last message
   * of a handler that answers with an Observable.
   */
  @MessagePattern('accounts.close')
  @UseInterceptors(
    LockInterceptor((context) => keyOf(context.switchToRpc().getData<Booking>()), { ttl: '2s', wait: 0 }),
  )
  async close(@Payload() { account, amount }: Booking): Promise<Receipt> {
    await this.bank.book(account, -amount);
    return { booked: -amount };
  }
}
