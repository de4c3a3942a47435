import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { type JobRun, LockedInterval } from 'nestjs-redlock/schedule';

/** Runs on one instance, most of the time. */
@Injectable()
export class ReportJob {
  @LockedInterval('15s', { name: 'report' })
  async report({ signal }: JobRun): Promise<void> {
    await sleep(10_000, undefined, { signal });
  }
}
