import type { Lock } from '../core/lock.js';
import type { MasterClock } from './job-clock.js';

/** What the masters keep with the resource of a job, and what is known about it. */
export interface JobReading {
  readonly value: unknown;
  /** Whether it is the last value that was stored. Otherwise it is the newest that is left. */
  readonly isCertain: boolean;
  /** What the clocks of the masters that answered showed, and when. */
  readonly clocks: readonly MasterClock[];
  /** For how long the newest data of a master that has lost its data has existed, in milliseconds; `undefined` if none has. */
  readonly dataAge: number | undefined;
}

/** The part of the state of a lock that jobs use. */
export interface JobRegister {
  read(
    options: { readonly onUncertain: 'newest' },
    more: { readonly keepsDoubt: true; readonly awaitsAll: true },
  ): Promise<JobReading>;
  set(value: unknown, options: { readonly expireAfter: number }): Promise<void>;
}

/** The lock of a job while this instance has it. */
export interface HeldJob {
  readonly lock: Lock & { readonly state: JobRegister };
  /** Runs work in the context of the lock. */
  run<T>(work: () => T): T;
  /** Releases the lock. Never rejects. */
  end(): Promise<void>;
}

/** How a lock is taken for a job. Durations are in milliseconds. */
export interface JobHolding {
  readonly ttl: number;
  readonly maxHold: number;
  readonly wait: number;
  readonly signal: AbortSignal;
}

/** The part of a lock service that jobs use. */
export interface JobLocks {
  hold(resources: readonly string[], options: JobHolding): Promise<HeldJob>;
}
