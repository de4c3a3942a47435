import { Body, Controller, Get, Param, ParseIntPipe, Post, Put } from '@nestjs/common';
import { StockService } from './stock.service.js';

interface Stock {
  item: string;
  left: number;
}

@Controller('stock/:item')
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Get()
  async left(@Param('item') item: string): Promise<Stock> {
    return { item, left: await this.stock.left(item) };
  }

  @Put()
  async fill(@Param('item') item: string, @Body('left', ParseIntPipe) left: number): Promise<Stock> {
    await this.stock.fill(item, left);
    return { item, left };
  }

  @Post('sales')
  async sell(@Param('item') item: string): Promise<Stock> {
    return { item, left: await this.stock.sell(item) };
  }
}
