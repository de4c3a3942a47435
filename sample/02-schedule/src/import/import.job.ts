import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { LockService, QuorumUnavailableError } from 'nestjs-redlock';
import { type JobRun, LockedInterval } from 'nestjs-redlock/schedule';
import { CONFIG } from '../config.token.js';
import type { Config } from '../config.js';
import { Store } from '../store.js';

/** Pages of one import. */
export const PAGES = 40;
/** How long it takes to read a page, in milliseconds. */
const PAGE_TIME = 100;
/** How long to wait before the masters are asked again, in milliseconds. */
const RETRY_DELAY = 200;

/** How far the import of a tick has come. */
interface Checkpoint {
  readonly tick: string;
  /** Number of the first page that is not imported. */
  readonly next: number;
}

/** Imports all pages at each tick. An attempt goes on where the one before it was cut off. */
@Injectable()
export class ImportJob {
  constructor(
    private readonly locks: LockService,
    private readonly store: Store,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * The checkpoint has a lock of its own, because the state of the lock of a job is the record of the job. Its holder may
   * have crashed, too, so the wait is longer than a ttl.
   */
  @LockedInterval('10s', { name: 'import' })
  async import(run: JobRun): Promise<void> {
    const tick = run.scheduledFor.toISOString();
    await this.locks.withLock('import:checkpoint', { wait: '10s', signal: run.signal }, async (lock) => {
      const signal = AbortSignal.any([run.signal, lock.signal]);
      // Masters that lost their data may leave an older checkpoint: then some pages are imported again.
      const checkpoint = await untilAnswered(() => lock.state.get<Checkpoint>(), signal);
      const first = checkpoint?.tick === tick ? checkpoint.next : 0;
      for (let page = first; page < PAGES; page++) {
        await sleep(PAGE_TIME, undefined, { signal });
        await this.store.log('import', `${tick} ${page} ${this.config.instance} ${run.attempt}`);
        // An instance that is killed before this line imports this page twice, and no other.
        const next: Checkpoint = { tick, next: page + 1 };
        await untilAnswered(() => lock.state.set(next), signal);
      }
    });
  }
}

/** Asks again while too few masters answer: an error would be the end of the import. */
async function untilAnswered<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof QuorumUnavailableError)) throw error;
      await sleep(RETRY_DELAY, undefined, { signal });
    }
  }
}
