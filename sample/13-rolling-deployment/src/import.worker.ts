import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { type Lock, LockError, LockService } from 'nestjs-redlock';
import { type Config, TTL } from './config.js';
import { CONFIG } from './config.token.js';
import { Ledger } from './ledger.js';

/** Imports one batch after another, on one instance at a time. The other instances wait until it leaves. */
@Injectable()
export class ImportWorker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(ImportWorker.name);
  private readonly leaving = new AbortController();

  constructor(
    private readonly locks: LockService,
    private readonly ledger: Ledger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onApplicationBootstrap(): void {
    void this.work();
  }

  /**
   * The first hook of a shutdown stops new batches and the wait for the lock. It does not wait for the current batch.
   * The lock module does that for `drainTimeout`, and then aborts the signal of the lock.
   */
  onModuleDestroy(): void {
    this.leaving.abort();
  }

  private isLeaving(): boolean {
    return this.leaving.signal.aborted;
  }

  private async work(): Promise<void> {
    // The lock may be held for weeks, and waited for as long. Both end early when the instance leaves.
    const options = { ttl: TTL, wait: '500h', maxHold: '500h', signal: this.leaving.signal } as const;
    while (!this.isLeaving()) {
      this.logger.log('waits for the import');
      try {
        await this.locks.withLock('import', options, (lock) => this.importAll(lock));
      } catch (error) {
        if (this.isLeaving()) break;
        if (!(error instanceof LockError)) throw error;
        this.logger.warn(`has to begin again: ${error.message}`);
      }
    }
    this.logger.log('leaves');
  }

  private async importAll(lock: Lock): Promise<void> {
    while (!this.isLeaving()) {
      // Check before each step that other instances would have to take if this one had lost the lock.
      lock.assertHeld();
      await this.importBatch(this.ledger.next(), lock);
    }
  }

  private async importBatch(batch: number, lock: Lock): Promise<void> {
    this.ledger.add('begun', batch);
    this.logger.log(`batch ${batch} begun`);
    try {
      // Long operations receive the signal. It aborts when the lock is lost, for example at the end of `drainTimeout`.
      await sleep(this.config.batchTime, undefined, { signal: lock.signal });
    } catch (error) {
      this.ledger.add('stopped', batch);
      throw error;
    }
    this.ledger.add('done', batch);
    this.logger.log(`batch ${batch} done`);
  }
}
