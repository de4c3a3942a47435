// One instance of an application with a scheduled job, or with a leader.
import 'reflect-metadata';
import { Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { RedlockModule } from 'nestjs-redlock';
import { RedlockLeaderModule } from 'nestjs-redlock/leader';
import { JobHistory, type JobRun, LockedCron, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { Relay, runJob, task } from './boot.js';
import { LONGEST_RUN } from './trace.js';

@Injectable()
class Jobs {
  constructor(private readonly history: JobHistory) {}

  @LockedCron('* * * * * *', { name: 'second', ttl: task.ttl, overlap: 'queue' })
  second(run: JobRun): Promise<void> {
    process.send?.({ running: true });
    return runJob('second', LONGEST_RUN, run);
  }

  onModuleInit(): void {
    process.on('message', () => {
      void this.history.list().then(
        ([report]) => process.send?.({ runs: report?.runs ?? [] }),
        () => undefined,
      );
    });
  }
}

const { masters, ttl, instance } = task;
const redlock = RedlockModule.forRoot({
  masters,
  ttl,
  maxTtl: 2_000,
  masterTimeout: 100,
  drainTimeout: 1_000,
  instance,
});
const isJob = task.duty === 'job';

@Module({
  imports: [redlock, ...(isJob ? [ScheduleModule.forRoot(), RedlockScheduleModule] : [RedlockLeaderModule])],
  providers: [isJob ? Jobs : Relay],
})
class AppModule {}

Logger.overrideLogger(['error']);
const app = await NestFactory.createApplicationContext(AppModule);
process.on('SIGTERM', () => void app.close().then(() => process.exit()));
process.send?.({ ready: true });
