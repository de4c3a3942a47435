import { describe, expect, it } from '@jest/globals';
import { ManualClock, memoryLockService } from 'nestjs-redlock/testing';
import { defer, Observable, take } from 'rxjs';
import { LockLostError } from '../../../lib/core/errors.js';
import type { Lock } from '../../../lib/core/lock.js';
import { LockContext } from '../../../lib/nest/lock-context.js';
import { LockedStream } from '../../../lib/nest/locked-stream.js';
import { LockScope } from '../../../lib/nest/lock-scope.js';

/** A stream that emits while the handler runs, and does not end by itself. */
function streaming() {
  const seen = { isOver: false };
  const values = new Observable<number>((subscriber) => {
    for (const value of [1, 2, 3]) subscriber.next(value);
    return () => {
      seen.isOver = true;
    };
  });
  return { values, seen };
}

/** The values of a handler under a lock. The handler is not declared to return an Observable. */
function underLock(lock: Lock, values: Observable<number>): Observable<unknown> {
  const hold = LockScope.of(lock, new LockContext());
  return new Observable((subscriber) => {
    const stream = new LockedStream(hold, { handle: () => values }, subscriber, undefined, false);
    return () => stream.unsubscribe();
  });
}

describe('The stream of a handler', () => {
  it('ends, and with it the lock, if its listener leaves before the handler has returned', async () => {
    const lock = await memoryLockService().acquire('a');
    const { values, seen } = streaming();
    const received: unknown[] = [];
    underLock(lock, values)
      .pipe(take(1))
      .subscribe((value) => received.push(value));
    expect(received).toEqual([1]);
    expect(seen.isOver).toBe(true);
    expect(lock.isHeld).toBe(false);
    await lock.release();
  });

  it('ends with the loss if the lock was lost before the first value', async () => {
    const clock = new ManualClock();
    const lock = await memoryLockService({ clock }).acquire('a', { ttl: 1_000, extend: false });
    const { values, seen } = streaming();
    const late = defer(() => {
      clock.stall(1_000);
      return values;
    });
    let error: unknown;
    underLock(lock, late).subscribe({ error: (reason: unknown) => (error = reason) });
    expect(error).toBeInstanceOf(LockLostError);
    expect(seen.isOver).toBe(true);
  });

  it('does not begin under a lock that has ended', async () => {
    const clock = new ManualClock();
    const lock = await memoryLockService({ clock }).acquire('a', { ttl: 1_000, extend: false });
    clock.stall(1_000);
    let [error, runs]: [unknown, number] = [undefined, 0];
    const handler = defer(() => [++runs]);
    underLock(lock, handler).subscribe({ error: (reason: unknown) => (error = reason) });
    expect(error).toBeInstanceOf(LockLostError);
    expect(runs).toBe(0);
  });
});
