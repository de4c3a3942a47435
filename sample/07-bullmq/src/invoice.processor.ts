import { Processor, WorkerHost } from '@nestjs/bullmq';
import { DelayedError, type Job } from 'bullmq';
import { LockNotAcquiredError, LockServiceStoppedError, QuorumUnavailableError, WithLock } from 'nestjs-redlock';
import { BillingService, type Invoice } from './billing.service.js';
import { QUEUE } from './queue.js';

/** Delay before a job whose customer is busy is tried again, in milliseconds. */
export const RETRY_AFTER = 250;

/** What {@link InvoiceProcessor.charge} rejects with if it has not begun: a busy customer, an outage, the shutdown of this worker. */
const NOT_BEGUN = [LockNotAcquiredError, QuorumUnavailableError, LockServiceStoppedError];

/** Runs several jobs at once in every worker, but never two of one customer. */
@Processor(QUEUE, { concurrency: 4 })
export class InvoiceProcessor extends WorkerHost {
  constructor(private readonly billing: BillingService) {
    super();
  }

  override async process(job: Job<Invoice>, token?: string): Promise<void> {
    try {
      await this.charge(job.data);
    } catch (error) {
      // Anything else, a lost lock too, is left to the attempts and the backoff of the job.
      if (!NOT_BEGUN.some((kind) => error instanceof kind)) throw error;
      await job.moveToDelayed(Date.now() + RETRY_AFTER, token);
      // Indicates that the job was moved: it has not failed, and the attempt does not count.
      throw new DelayedError();
    }
  }

  /** Does not wait: a waiting job would occupy one of the worker's four slots that other customers could use. */
  @WithLock(({ customer }: Invoice) => `customer:${customer}`, { ttl: '2s', wait: 0 })
  private async charge(invoice: Invoice): Promise<void> {
    await this.billing.charge(invoice);
  }
}
