import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { CronExpression } from '@nestjs/schedule';
import { type JobRun, LockedCron } from 'nestjs-redlock/schedule';
import { Store } from './store.js';

/** Every instance has this job, but each tick runs on one of them only. */
@Injectable()
export class ReportJob {
  constructor(private readonly store: Store) {}

  /** The ttl is longer than the default for such a short period, so that a busy machine loses no lock. */
  @LockedCron(CronExpression.EVERY_SECOND, { name: 'report', ttl: '4s' })
  async report({ scheduledFor, attempt }: JobRun): Promise<void> {
    await sleep(50);
    await this.store.log('reports', scheduledFor.getTime() / 1000, attempt);
  }
}
