import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { WithLock } from 'nestjs-redlock';
import { CONFIG } from '../config.token.js';
import type { Config } from '../config.js';
import { Store } from '../store.js';

/** How long a report takes, in milliseconds. */
const REPORT_TIME = 50;

/** Every instance has this job, and every tick of it runs on one of them. */
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
   * - The key names the tick, so that one tick cannot be taken for another, however close they are.
   * - `minHold` keeps the tick taken long after a short report has been made: an instance whose timer is late, by up to
   *   4 s, still finds it taken.
   * - `skip` is for those who come second. They wait a moment first: when all ask at once, the votes of the masters
   *   can split so that nobody wins, and without a second try nobody would run the tick.
   */
  @WithLock((second: number) => `report:${second}`, '4s', { onLocked: 'skip', wait: '500ms', minHold: '4s' })
  async report(second: number): Promise<void> {
    await this.store.log('reports', `${second} ${this.config.instance}`);
    await sleep(REPORT_TIME);
  }
}
