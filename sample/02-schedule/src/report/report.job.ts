import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { WithLock } from 'nestjs-redlock';
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

  @Cron(CronExpression.EVERY_SECOND)
  async tick(): Promise<void> {
    await this.report(Math.floor(Date.now() / 1000));
  }

  /**
   * - The key contains the tick, so that ticks cannot be confused, however close they are.
   * - `minHold` keeps the tick locked long after a short report is complete. An instance whose timer is up to 4 s late
   *   still finds it locked.
   * - `skip` ends the call of the instances that come second. They wait a moment first: when all instances ask at once,
   *   the votes of the masters can split so that no instance wins. Without a second attempt, the tick would not run.
   */
  @WithLock((second: number) => `report:${second}`, { ttl: '4s', onLocked: 'skip', wait: '500ms', minHold: '4s' })
  async report(second: number): Promise<void> {
    await this.store.log('reports', `${second} ${this.config.instance}`);
    await sleep(REPORT_TIME);
  }
}
