import { ConflictException, Controller, Param, Post } from '@nestjs/common';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':id/shipment')
  async ship(@Param('id') id: string): Promise<{ shipped: string }> {
    const shipment = await this.orders.ship(id);
    if (!shipment) throw new ConflictException('another request ships this order');
    return shipment;
  }
}
