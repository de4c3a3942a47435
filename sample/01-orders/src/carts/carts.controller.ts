import {
  Body,
  Controller,
  type ExecutionContext,
  Get,
  Param,
  ParseIntPipe,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { LockInterceptor } from 'nestjs-redlock';
import type { Cart } from '../database.js';
import { CartsService } from './carts.service.js';

/** Both routes name the same resource, so they exclude each other. */
const cartOf = (context: ExecutionContext): string =>
  `cart:${context.switchToHttp().getRequest<{ params: { id: string } }>().params.id}`;

@Controller('carts/:id')
export class CartsController {
  constructor(private readonly carts: CartsService) {}

  @Get()
  find(@Param('id') id: string): Promise<Cart> {
    return this.carts.find(id);
  }

  /** Waits for its turn. */
  @Post('items')
  @UseInterceptors(LockInterceptor(cartOf, '2s'))
  add(
    @Param('id') id: string,
    @Body('sku') sku: string,
    @Body('quantity', ParseIntPipe) quantity: number,
  ): Promise<Cart> {
    return this.carts.add(id, sku, quantity);
  }

  /** Does not wait: a second payment gets 423 at once. */
  @Post('checkout')
  @UseInterceptors(LockInterceptor(cartOf, { ttl: '2s', wait: 0 }))
  checkOut(@Param('id') id: string): Promise<Cart> {
    return this.carts.checkOut(id);
  }
}
