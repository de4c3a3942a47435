import { Controller, Param, Post, UseInterceptors } from '@nestjs/common';
import { LockInterceptor, WithLock } from 'nestjs-redlock';
import { Payments } from './payments.js';
import { tenantKey } from './tenant.js';

@Controller('carts/:id')
export class CartsController {
  constructor(private readonly payments: Payments) {}

  /** The key contains the tenant of the request, although no argument names it. */
  @Post('checkout')
  @WithLock((id: string) => tenantKey('cart', id), { ttl: '2s', wait: 0 })
  async checkOut(@Param('id') id: string): Promise<void> {
    await this.payments.charge(id);
  }

  /** Takes the same lock through the interceptor. */
  @Post('cancellation')
  @UseInterceptors(
    LockInterceptor((context) => tenantKey('cart', context.switchToHttp().getRequest<Request>().params.id), {
      ttl: '2s',
      wait: 0,
    }),
  )
  async cancel(@Param('id') id: string): Promise<void> {
    await this.payments.refund(id);
  }
}

/** The part of a request that the key needs. */
interface Request {
  params: { id: string };
}
