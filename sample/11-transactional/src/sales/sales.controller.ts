import { Controller, Param, Post } from '@nestjs/common';
import { Sales } from './sales.js';

@Controller('stock/:item')
export class SalesController {
  constructor(private readonly sales: Sales) {}

  @Post('sales/:customer')
  async sell(@Param('item') item: string, @Param('customer') customer: string): Promise<{ left: number }> {
    return { left: await this.sales.sell(item, customer) };
  }
}
