import { Injectable, UnprocessableEntityException } from '@nestjs/common';
import { LockService } from 'nestjs-redlock';
import { type Account, Database } from '../database.js';

@Injectable()
export class AccountsService {
  constructor(
    private readonly database: Database,
    private readonly locks: LockService,
  ) {}

  async open(id: string, balance: number): Promise<Account> {
    await this.database.accounts.save(id, { balance });
    return { balance };
  }

  async find(id: string): Promise<Account> {
    return (await this.database.accounts.find(id)) ?? { balance: 0 };
  }

  /**
   * Needs both accounts at once. The lock takes them together or not at all, so a transfer from A to B and one from B
   * to A cannot wait for each other.
   */
  async transfer(from: string, to: string, amount: number): Promise<void> {
    await this.locks.withLock([`account:${from}`, `account:${to}`], '2s', async (lock) => {
      const [source, target] = await Promise.all([this.find(from), this.find(to)]);
      if (source.balance < amount) throw new UnprocessableEntityException(`Account ${from} has only ${source.balance}`);

      // The last point at which stopping does no harm.
      lock.assertHeld();
      await Promise.all([
        this.database.accounts.save(from, { balance: source.balance - amount }),
        this.database.accounts.save(to, { balance: target.balance + amount }),
      ]);
    });
  }
}
