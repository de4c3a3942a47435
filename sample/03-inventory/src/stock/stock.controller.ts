import { Body, Controller, Get, Param, ParseIntPipe, Post, Put } from '@nestjs/common';
import { StockService } from './stock.service.js';

interface Stock {
  item: string;
  count: number;
}

@Controller('stock/:item')
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Get()
  async count(@Param('item') item: string): Promise<Stock> {
    return { item, count: await this.stock.count(item) };
  }

  @Put()
  async put(@Param('item') item: string, @Body('count', ParseIntPipe) count: number): Promise<Stock> {
    await this.stock.put(item, count);
    return { item, count };
  }

  @Post('sales')
  async sell(@Param('item') item: string): Promise<Stock> {
    return { item, count: await this.stock.sell(item) };
  }
}
