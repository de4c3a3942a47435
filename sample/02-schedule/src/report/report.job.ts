import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { CronExpression } from '@nestjs/schedule';
import { type JobRun, LockedCron } from 'nestjs-redlock/schedule';
import { CONFIG } from '../config.token.js';
import type { Config } from '../config.js';
import { Store } from '../store.js';

/** Duration of a report, in milliseconds. */
const REPORT_TIME = 50;

/** Every instance has this job, but each tick runs on one of them only. */
@Injectable()
export class ReportJob {
  constructor(
    private readonly store: Store,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** The ttl is longer than the default for such a short period, so that a busy machine loses no lock. */
  @LockedCron(CronExpression.EVERY_SECOND, { name: 'report', ttl: '4s' })
  async report({ scheduledFor, attempt }: JobRun): Promise<void> {
    await this.store.log('reports', `${scheduledFor.getTime() / 1000} ${this.config.instance} ${attempt}`);
    await sleep(REPORT_TIME);
  }
}
