import { expect } from '@jest/globals';
import { type DynamicModule, Injectable, type Type } from '@nestjs/common';
import {
  type Duration,
  type LockedMethodOptions,
  type LockKey,
  RedlockModule,
  type RedlockModuleOptions,
  WithLock,
} from 'nestjs-redlock';
import { type ManualClock, type MemoryMaster, memoryMasters } from 'nestjs-redlock/testing';
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

  /** Loses all locks: they expire while the masters hang. */
  async lose(clock: ManualClock): Promise<void> {
    this.masters.forEach((master) => master.pause());
    await clock.advance(10_000);
    this.masters.forEach((master) => master.resume());
    this.masters.forEach((master) => master.flush());
  }

  async expectNothingLeft(): Promise<void> {
    await settle();
    expect(this.masters.map(({ size }) => size)).toEqual(this.masters.map(() => 0));
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
