import { Body, Controller, Get, Param, ParseIntPipe, Post, Put } from '@nestjs/common';
import { StockService } from './stock.service.js';

@Controller('stock/:item')
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Get()
  count(@Param('item') item: string): { count: number } {
    return { count: this.stock.count(item) };
  }

  @Put()
  async put(@Param('item') item: string, @Body('count', ParseIntPipe) count: number): Promise<{ count: number }> {
    await this.stock.put(item, count);
    return { count };
  }

  @Post('sales')
  async sell(@Param('item') item: string): Promise<{ count: number }> {
    return { count: await this.stock.sell(item) };
  }
}
