import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LockService } from 'nestjs-redlock';
import { CONFIG } from '../config.token.js';
import type { Config } from '../config.js';

/** Milliseconds between two measurements. */
const INTERVAL = 20;
/** Limit for the number of samples; older ones are dropped. */
const MAX_SAMPLES = 10_000;

/** One measurement; `error` is set if the lock could not be acquired. */
export interface Sample {
  /** Time of the measurement, in milliseconds since the Unix epoch. */
  at: number;
  /** Duration, in milliseconds. */
  took: number;
  error?: string;
}

/** Measures the cost of an uncontended lock, which depends on the masters and not on contention. */
@Injectable()
export class LatencyProbe {
  private readonly recorded: Sample[] = [];
  private count = 0;

  constructor(
    private readonly locks: LockService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  get samples(): readonly Sample[] {
    return this.recorded;
  }

  @Interval(INTERVAL)
  async measure(): Promise<void> {
    const at = Date.now();
    const start = performance.now();
    try {
      const lock = await this.locks.acquire(`probe:${this.config.instance}:${this.count++}`, '1s');
      this.record({ at, took: performance.now() - start });
      await lock.release();
    } catch (error) {
      this.record({ at, took: performance.now() - start, error: String(error) });
    }
  }

  private record(sample: Sample): void {
    this.recorded.push(sample);
    if (this.recorded.length > MAX_SAMPLES) this.recorded.shift();
  }
}
