import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LockService, QuorumUnavailableError } from 'nestjs-redlock';
import { type JobRun, LockedInterval } from 'nestjs-redlock/schedule';
import { Store } from './store.js';

/** Pages of one import. */
export const PAGES = 40;

/** How far the import of a tick has come: the first page that is not imported. */
interface Checkpoint {
  readonly tick: string;
  readonly next: number;
}

/** Imports all pages at each tick. An attempt goes on where the one before it was cut off. */
@Injectable()
export class ImportJob {
  constructor(
    private readonly locks: LockService,
    private readonly store: Store,
  ) {}

  /** Its `wait` is longer than a ttl, for which a crashed instance may have the checkpoint. */
  @LockedInterval('10s', { name: 'import' })
  async import(run: JobRun): Promise<void> {
    const tick = run.scheduledFor.toISOString();
    await this.locks.withLock('import:checkpoint', { wait: '10s', signal: run.signal }, async (lock) => {
      const signal = AbortSignal.any([run.signal, lock.signal]);
      // Masters that lost their data may leave an older checkpoint: then some pages are imported again.
      const checkpoint = await untilAnswered(() => lock.state.get<Checkpoint>(), signal);
      const first = checkpoint?.tick === tick ? checkpoint.next : 0;
      for (let page = first; page < PAGES; page++) {
        await sleep(100, undefined, { signal });
        await this.store.log('import', tick, page, run.attempt);
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
      await sleep(200, undefined, { signal });
    }
  }
}
