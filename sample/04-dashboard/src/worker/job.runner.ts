import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LockError, LockService, WithLock } from 'nestjs-redlock';
import type { Job } from '../config.js';
import { JOBS } from './jobs.token.js';
import { publish } from './news.js';

/** How often the remaining time of a lock is reported, in milliseconds. */
const INTERVAL = 200;
/** Shortest and longest rest of an instance after a job, in milliseconds. */
const REST = [200, 1_200] as const;

/** Runs every job repeatedly, like every other instance. */
@Injectable()
export class JobRunner implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopping = new AbortController();

  constructor(
    @Inject(JOBS) private readonly jobs: readonly Job[],
    private readonly locks: LockService,
  ) {}

  onApplicationBootstrap(): void {
    for (const job of this.jobs) void this.repeat(job);
  }

  beforeApplicationShutdown(): void {
    this.stopping.abort();
  }

  /** Ends with the job or with the lock, whichever comes first. */
  @WithLock(({ resource }: Job) => resource, { wait: '1m' })
  async run({ resource, takes }: Job): Promise<void> {
    const lock = this.locks.current(resource);
    if (!lock) return;
    const end = performance.now() + between(takes);
    const token = await lock.fencingToken();
    while (lock.isHeld && performance.now() < end) {
      publish({ kind: 'holding', resource, remaining: lock.remaining(), token });
      await this.rest(INTERVAL, lock.signal);
    }
  }

  private async repeat(job: Job): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        await this.run(job);
      } catch (error) {
        // The lock was lost, or there was no quorum for too long. The observer has reported it, and the next attempt
        // may succeed.
        if (!(error instanceof LockError)) throw error;
      }
      await this.rest(between(REST));
    }
  }

  /** Rests for this time, or until a signal aborts. */
  private async rest(milliseconds: number, ...signals: AbortSignal[]): Promise<void> {
    const signal = AbortSignal.any([this.stopping.signal, ...signals]);
    await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
  }
}

function between([shortest, longest]: readonly [number, number]): number {
  return shortest + Math.random() * (longest - shortest);
}
