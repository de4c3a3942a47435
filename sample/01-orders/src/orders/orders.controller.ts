import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import type { Order } from '../database.js';
import { OrdersService } from './orders.service.js';

@Controller('orders/:id')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  place(@Param('id') id: string): Promise<Order> {
    return this.orders.place(id);
  }

  @Get()
  find(@Param('id') id: string): Promise<Order> {
    return this.orders.find(id);
  }

  @Post('shipment')
  ship(@Param('id') id: string, @Body('by') by: string): Promise<Order> {
    return this.orders.ship(id, by);
  }
}
