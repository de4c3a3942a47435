// Compile-only: `npm run typecheck` fails where something compiles that must not. What must compile is in test/e2e, in the
// samples and in the documentation.
import type { Lock, LockObserver } from 'nestjs-redlock';
import { LockInterceptor } from 'nestjs-redlock';
import { Leader, type Leadership } from 'nestjs-redlock/leader';
import { type JobRun, LockedCron, LockedInterval } from 'nestjs-redlock/schedule';
import { fence } from 'nestjs-redlock/sql';
import type { RedlockHealthIndicator } from 'nestjs-redlock/terminus';
import type { ClientBase } from 'pg';

declare const lock: Lock;
declare const client: ClientBase;
declare const redlock: RedlockHealthIndicator;

// @ts-expect-error an interceptor names the status to send
LockInterceptor('cart', { onLocked: 'skip' });

// @ts-expect-error there is no such event
export const wrong: LockObserver = { acquired: () => undefined };

// @ts-expect-error a fence needs the query function of a transaction
export const unfenced = fence(lock, {});

// @ts-expect-error a resource is no lock
export const named = fence('stock:teapot', (statement) => client.query(statement));

// @ts-expect-error the result of a health check has the key that was given
export const health = (await redlock.isHealthy('locks')).redlock;

export class Methods {
  // @ts-expect-error an election has a name
  @Leader()
  async unnamed(): Promise<void> {}

  // @ts-expect-error an election has no permits
  @Leader('x', { permits: 2 })
  async permitted(): Promise<void> {}

  // @ts-expect-error a leader returns a promise
  @Leader('x')
  synchronous(): void {}

  // @ts-expect-error a leader receives a leadership only
  @Leader('x')
  async demanding(leadership: Leadership, more: string): Promise<void> {}

  // @ts-expect-error a job has a name
  @LockedCron('* * * * *')
  async unnamedJob(): Promise<void> {}

  // @ts-expect-error an interval has no time zone
  @LockedInterval('5m', { name: 'zoned', timeZone: 'UTC' })
  async zoned(): Promise<void> {}

  // @ts-expect-error a job returns a promise
  @LockedInterval('5m', { name: 'sync' })
  synchronousJob(): void {}

  // @ts-expect-error a job receives a run only
  @LockedInterval('5m', { name: 'sync' })
  async demandingJob(run: JobRun, more: string): Promise<void> {}
}
