import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Inject, Injectable, Post, UseInterceptors } from '@nestjs/common';
import { LockInterceptor, LockService, RedlockModule, WithLock } from 'nestjs-redlock';
import { memoryMasters } from 'nestjs-redlock/testing';
import { boot, closeAll, listen, logs } from './support/applications.js';

afterEach(closeAll);

@Injectable()
class Jobs {
  constructor(@Inject(LockService) readonly locks: LockService) {}

  @WithLock('report', { ttl: '5s', onLocked: 'skip' })
  async report(): Promise<string | undefined> {
    return 'done';
  }

  @WithLock('report', { ttl: '5s', wait: 0, onLocked: () => 'later' })
  async reportLater(): Promise<string> {
    return 'done';
  }

  @WithLock('report', { ttl: '5s', wait: 0 })
  async mustReport(): Promise<string> {
    return 'done';
  }
}

@Controller('report')
class Reports {
  @Post()
  @UseInterceptors(LockInterceptor('report', { ttl: '5s', onLocked: { status: 202 } }))
  create(): string {
    return 'done';
  }
}

describe('A call that is skipped because another holder has the lock', () => {
  it('is logged for debugging, with the method and the resource, and reported to observers', async () => {
    const skipped: unknown[] = [];
    const observers = [{ skipped: (caller: string, error: Error) => skipped.push([caller, error.name]) }];
    const app = await boot({
      imports: [RedlockModule.forRoot({ masters: memoryMasters(3), observers })],
      providers: [Jobs],
    });
    const jobs = app.get(Jobs);
    await using _ = await jobs.locks.acquire('report');
    const from = logs.length;
    await expect(jobs.report()).resolves.toBeUndefined();
    await expect(jobs.reportLater()).resolves.toBe('later');
    await expect(jobs.locks.tryAcquire('report')).resolves.toBeNull();
    const why = /was skipped: "report" is held by .*: not acquired \(memory-1: held/;
    expect(logs.slice(from).map((line) => line.replace(why, 'skipped').replace(/ for \d+.*/, ''))).toEqual([
      'debug @WithLock on Jobs.report skipped',
      'debug @WithLock on Jobs.reportLater skipped',
      'debug tryAcquire skipped',
    ]);
    expect(skipped).toEqual(
      ['@WithLock on Jobs.report', '@WithLock on Jobs.reportLater', 'tryAcquire'].map((caller) => [
        caller,
        'LockNotAcquiredError',
      ]),
    );
  });

  it('is logged with the handler of an interceptor', async () => {
    const { app, url } = await listen({
      imports: [RedlockModule.forRoot({ masters: memoryMasters(3) })],
      controllers: [Reports],
    });
    await using _ = await app.get(LockService).acquire('report');
    const from = logs.length;
    await expect(fetch(`${url}/report`, { method: 'POST' })).resolves.toMatchObject({ status: 202 });
    expect(logs.slice(from)).toEqual([
      expect.stringMatching(/^debug LockInterceptor on Reports\.create was skipped: "report" is held/),
    ]);
  });

  it('leaves no line if the call fails instead, which its caller handles', async () => {
    const app = await boot({ imports: [RedlockModule.forRoot({ masters: memoryMasters(3) })], providers: [Jobs] });
    const jobs = app.get(Jobs);
    await using _ = await jobs.locks.acquire('report');
    const from = logs.length;
    await expect(jobs.mustReport()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await expect(jobs.locks.acquire('report', { ttl: '5s', wait: 0 })).rejects.toThrow('held by');
    expect(logs.slice(from)).toEqual([]);
  });
});
