// Compile-only: `npm run typecheck` fails where something compiles that must not, or does not that must.
import { applyDecorators, Injectable, Module, SetMetadata } from '@nestjs/common';
import { CronExpression, ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { JobHistory, type JobRun, LockedCron, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';

@Injectable()
export class Jobs {
  constructor(private readonly history: JobHistory) {}

  @LockedCron(CronExpression.EVERY_DAY_AT_3AM, { name: 'report', timeZone: 'Europe/Berlin', catchUp: true })
  async report({ scheduledFor, attempt, previous, signal, lock }: JobRun): Promise<Date> {
    signal.throwIfAborted();
    lock.assertHeld();
    const ended: Date | undefined = previous?.endedAt ?? (await this.history.last('report'))?.endedAt;
    return attempt > 1 ? scheduledFor : (ended ?? scheduledFor);
  }

  @LockedInterval('5m', { name: 'sync', overlap: 'queue', recover: false })
  async sync(): Promise<void> {
    await this.history.list();
  }

  // @ts-expect-error a job has a name
  @LockedCron('* * * * *')
  async unnamed(): Promise<void> {}

  // @ts-expect-error an interval has no time zone
  @LockedInterval('5m', { name: 'zoned', timeZone: 'UTC' })
  async zoned(): Promise<void> {}

  // @ts-expect-error a job returns a promise
  @LockedInterval('5m', { name: 'sync' })
  synchronous(): void {}

  // @ts-expect-error a job receives a run only
  @LockedInterval('5m', { name: 'sync' })
  async demanding(run: JobRun, more: string): Promise<string> {
    return `${run.job} ${more}`;
  }
}

export class Composed {
  @applyDecorators(
    SetMetadata('id', 1),
    LockedCron('0 3 * * *', { name: 'nightly' }),
    LockedInterval('5m', { name: 'sync' }),
  )
  async run(): Promise<void> {}
}

@Module({
  imports: [RedlockModule.forRoot({ masters: 'memory' }), ScheduleModule.forRoot(), RedlockScheduleModule],
  providers: [Jobs],
})
export class JobsModule {}
