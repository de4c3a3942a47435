import { expect } from '@jest/globals';
import type { DynamicModule } from '@nestjs/common';
import { RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { type MemoryMaster, memoryMasters } from 'nestjs-redlock/testing';
import { settle } from './deferred.js';

/** Masters in memory, the module that uses them, and the keys that they hold. */
export class Locks {
  readonly masters: MemoryMaster[];

  constructor(
    count = 1,
    private readonly options: Partial<RedlockModuleOptions> & { name?: string; isGlobal?: boolean } = {},
  ) {
    this.masters = memoryMasters(count, options.clock);
  }

  /** The module, for one application. Several applications may lock on the same masters. */
  module(more: Partial<RedlockModuleOptions> = {}): DynamicModule {
    return RedlockModule.forRoot({ masters: this.masters, ...this.options, ...more });
  }

  /** Whether a majority of the masters holds a key. */
  get held(): boolean {
    return this.masters.filter(({ size }) => size > 0).length > this.masters.length / 2;
  }

  async expectNothingLeft(): Promise<void> {
    await settle();
    expect(this.masters.map(({ size }) => size)).toEqual(this.masters.map(() => 0));
  }
}
