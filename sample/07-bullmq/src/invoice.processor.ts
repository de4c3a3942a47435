import { Processor, WorkerHost } from '@nestjs/bullmq';
import { DelayedError, type Job } from 'bullmq';
import { LockNotAcquiredError, LockServiceStoppedError, WithLock } from 'nestjs-redlock';
import { BillingService, type Invoice } from './billing.service.js';
import { QUEUE } from './queue.js';

/** When a job whose customer is busy is tried again, in milliseconds. */
export const RETRY_AFTER = 250;

/** Several jobs at once in every worker, but never two of one customer. */
@Processor(QUEUE, { concurrency: 4 })
export class InvoiceProcessor extends WorkerHost {
  constructor(private readonly billing: BillingService) {
    super();
  }

  override async process(job: Job<Invoice>, token?: string): Promise<void> {
    try {
      await this.charge(job.data);
    } catch (error) {
      // Also while this worker is shutting down: another one gets the job. An outage of the masters is left to the
      // attempts and the backoff of the job, like any other error.
      if (!(error instanceof LockNotAcquiredError || error instanceof LockServiceStoppedError)) throw error;
      await job.moveToDelayed(Date.now() + RETRY_AFTER, token);
      // Says that the job was moved: no attempt is used up, and nothing has failed.
      throw new DelayedError();
    }
  }

  /** Does not wait: a job that waits would keep one of the worker's four places from other customers. */
  @WithLock(({ customer }: Invoice) => `customer:${customer}`, '10s', { wait: 0 })
  private async charge(invoice: Invoice): Promise<void> {
    await this.billing.charge(invoice);
  }
}
