// Exercises scheduled jobs, which need an optional peer.
import { deepEqual, equal } from 'node:assert/strict';
import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { JobHistory, type JobRun, LockedCron, LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { start } from './application.js';

/** Jobs that have run here. */
const ran = new Set<string>();

@Injectable()
class Jobs {
  @LockedInterval('1s', { name: 'sync' })
  async sync({ job }: JobRun): Promise<void> {
    ran.add(job);
  }

  @LockedCron('* * * * * *', { name: 'report', timeZone: 'Europe/Berlin' })
  async report({ job }: JobRun): Promise<void> {
    ran.add(job);
  }
}

@Module({ imports: [ScheduleModule.forRoot(), RedlockScheduleModule], providers: [Jobs] })
class JobsModule {}

export async function exerciseJobs(masters: readonly string[], keyPrefix: string): Promise<void> {
  const app = await start({ masters, keyPrefix, instance: 'matrix' }, [JobsModule]);
  try {
    const history = app.get(JobHistory);
    const ended = Promise.all(['sync', 'report'].map((name) => endOf(history, name)));
    deepEqual(await ended, ['ok', 'ok']);
    deepEqual([...ran].sort(), ['report', 'sync']);
    const [sync, report] = await history.list();
    deepEqual([sync?.schedule, report?.timeZone], ['1s', 'Europe/Berlin']);
    equal((await history.last('sync'))?.instance, 'matrix');
  } finally {
    await app.close();
  }
}

/** The outcome of the first run that ends. */
function endOf(history: JobHistory, name: string): Promise<string> {
  return new Promise((resolve) => {
    const remove = history.observe({
      ended: (job, { outcome }) => {
        if (job !== name) return;
        remove();
        resolve(outcome);
      },
    });
  });
}
