import type { LoggerService } from '@nestjs/common';
import type { RedlockStatus } from '../core/health/status.js';
import type { AcquisitionObserver } from '../core/observer.js';
import type { LockService } from '../nest/lock.service.js';
import { SystemClock } from '../runtime/system-clock.js';
import { logTo } from '../nest/log-observer.js';
import type { EventLog } from './event-log.js';

/** Masters are asked at most once in this many milliseconds, however many pages are open. */
const PROBE_INTERVAL = 1_000;
/** Number of locks that are listed. */
const MOST_LISTED = 100;

/** A lock that this process holds or waits for. */
export interface OwnLock {
  readonly resources: readonly string[];
  /** When it was acquired, or when the wait began, in milliseconds since the Unix epoch. */
  readonly since: number;
}

/** Some locks, the oldest first. */
export interface OwnLocks {
  /** Number of all of them. */
  readonly count: number;
  readonly locks: readonly OwnLock[];
}

/** What is known about one lock service. */
export class ServiceWatch {
  private readonly holding = new Set<OwnLock>();
  private readonly pending = new Set<OwnLock>();
  private probed: { readonly at: number; readonly status: Promise<RedlockStatus> } | undefined;

  /** @param name `null` for the service without a name */
  constructor(
    readonly name: string | null,
    readonly locks: LockService,
    private readonly events: EventLog,
  ) {}

  /** Follows the events of the service from now on. */
  begin(): void {
    const { events, name } = this;
    const lines: LoggerService = {
      log: (text: string) => events.add(name, 'good', text),
      warn: (text: string) => events.add(name, 'warning', text),
      error: (text: string) => events.add(name, 'bad', text),
    };
    const observer = {
      ...logTo(lines, new SystemClock()),
      lockLost: (error: Error): void => events.add(name, 'lost', error.message),
      acquiring: (resources: readonly string[]): AcquisitionObserver => this.follow(resources),
    };
    // A test may have replaced the service by an object of its own.
    if (typeof (this.locks as Partial<LockService>).observe === 'function') this.locks.observe(observer);
  }

  /** The state of the masters, which are asked for it. Answers of the last second are used again. */
  status(now = performance.now()): Promise<RedlockStatus> {
    if (!this.probed || now - this.probed.at >= PROBE_INTERVAL) {
      this.probed = { at: now, status: this.locks.probe() };
    }
    return this.probed.status;
  }

  get held(): OwnLocks {
    return listed(this.holding);
  }

  get waiting(): OwnLocks {
    return listed(this.pending);
  }

  private follow(resources: readonly string[]): AcquisitionObserver {
    let lock: OwnLock = { resources, since: Date.now() };
    this.pending.add(lock);
    return {
      granted: () => {
        this.pending.delete(lock);
        lock = { resources, since: Date.now() };
        this.holding.add(lock);
      },
      failed: () => void this.pending.delete(lock),
      ended: () => void this.holding.delete(lock),
    };
  }
}

function listed(locks: ReadonlySet<OwnLock>): OwnLocks {
  const first: OwnLock[] = [];
  for (const lock of locks) {
    if (first.length === MOST_LISTED) break;
    first.push(lock);
  }
  return { count: locks.size, locks: first };
}
