import { BadRequestException, Body, Controller, Get, HttpCode, Param, ParseIntPipe, Post } from '@nestjs/common';
import type { Account } from '../database.js';
import { AccountsService } from './accounts.service.js';

@Controller('accounts')
export class AccountsController {
  constructor(private readonly accounts: AccountsService) {}

  @Get(':id')
  find(@Param('id') id: string): Promise<Account> {
    return this.accounts.find(id);
  }

  @Post(':id')
  open(@Param('id') id: string, @Body('balance', ParseIntPipe) balance: number): Promise<Account> {
    return this.accounts.open(id, balance);
  }

  @Post(':from/transfers')
  @HttpCode(204)
  async transfer(
    @Param('from') from: string,
    @Body('to') to: string,
    @Body('amount', ParseIntPipe) amount: number,
  ): Promise<void> {
    if (from === to || amount <= 0)
      throw new BadRequestException('A transfer needs two accounts and a positive amount');
    await this.accounts.transfer(from, to, amount);
  }
}
