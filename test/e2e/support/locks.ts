import { afterEach, beforeEach, expect } from '@jest/globals';
import { type DynamicModule, Injectable, type Type } from '@nestjs/common';
import {
  type Duration,
  type LockedMethodOptions,
  type LockKey,
  RedlockModule,
  type RedlockModuleOptions,
  WithLock,
} from 'nestjs-redlock';
import { ManualClock, type MemoryMaster, memoryMasters } from 'nestjs-redlock/testing';
import { closeAll } from './applications.js';
import { settle } from './deferred.js';

/** Masters in memory, the module that uses them, and the keys that they hold. */
export class Locks {
  masters: MemoryMaster[];

  constructor(
    protected readonly count = 1,
    private readonly options: Partial<RedlockModuleOptions> & { name?: string; isGlobal?: boolean } = {},
  ) {
    this.masters = memoryMasters(count, options.clock);
  }

  /** The module, for one application. Several applications may lock on the same masters. */
  module(more: Partial<RedlockModuleOptions> = {}): DynamicModule {
    return RedlockModule.forRoot({ masters: this.masters, maxTtl: '30s', ...this.options, ...more });
  }

  /** Whether a majority of the masters holds a key. */
  get held(): boolean {
    return this.masters.filter(({ size }) => size > 0).length > this.masters.length / 2;
  }

  /** What happens to all masters. */
  each(event: 'takeDown' | 'bringUp' | 'pause' | 'resume' | 'flush'): void {
    for (const master of this.masters) master[event]();
  }

  async expectNothingLeft(): Promise<void> {
    await settle();
    expect(this.masters.map(({ size }) => size)).toEqual(this.masters.map(() => 0));
  }
}

/** Locks by a manual clock. Each test of the file has another clock and other masters, and leaves nothing on them. */
export class LocksPerTest extends Locks {
  clock = new ManualClock();

  constructor(...args: ConstructorParameters<typeof Locks>) {
    super(...args);
    beforeEach(() => {
      this.clock = new ManualClock();
      this.masters = memoryMasters(this.count, this.clock);
    });
    afterEach(async () => {
      await closeAll();
      await this.expectNothingLeft();
      expect(this.clock.pendingTimers).toBe(0);
    });
  }

  override module(more: Partial<RedlockModuleOptions> = {}): DynamicModule {
    return super.module({ clock: this.clock, ...more });
  }

  /** Loses all locks: they expire while the masters hang. */
  async lose(): Promise<void> {
    this.each('pause');
    await this.clock.advance(10_000);
    this.each('resume');
    this.each('flush');
  }
}

/** A class with a method under `@WithLock`. */
export function jobUnder(
  key: LockKey,
  options?: Duration | LockedMethodOptions,
  work: () => unknown = async () => undefined,
): Type<{ run(): Promise<unknown> }> {
  @Injectable()
  class Job {
    @WithLock(key as string, options)
    run(): Promise<unknown> {
      return work() as Promise<unknown>;
    }
  }
  return Job;
}
