import type { LoggerService } from '@nestjs/common';
import type { RedlockStatus } from '../core/health/status.js';
import type { OwnLocks } from '../core/own-locks.js';
import type { LockService } from '../nest/lock.service.js';
import { SystemClock } from '../runtime/system-clock.js';
import { logTo } from '../nest/log-observer.js';
import type { EventLog } from './event-log.js';

/** Masters are asked at most once in this many milliseconds, however many pages are open. */
const PROBE_INTERVAL = 1_000;
/** Number of locks that are listed. */
const MOST_LISTED = 100;

/** What is known about one lock service. */
export class ServiceWatch {
  private probed: { readonly at: number; readonly status: Promise<RedlockStatus> } | undefined;

  /** @param name `null` for the service without a name */
  constructor(
    readonly name: string | null,
    readonly locks: LockService,
    private readonly events: EventLog,
  ) {}

  /** Whether locking is off by `enabled: false`. */
  get isOff(): boolean {
    return !this.locks.excludes;
  }

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
    };
    this.locks.observe(observer);
  }

  /** The state of the masters, which are asked for it. Answers of the last second are used again. */
  status(now = performance.now()): Promise<RedlockStatus> {
    if (!this.probed || now - this.probed.at >= PROBE_INTERVAL) {
      this.probed = { at: now, status: this.locks.probe() };
    }
    return this.probed.status;
  }

  /** What this process holds and waits for, however it began before the watch. */
  get own(): { readonly held: OwnLocks; readonly waiting: OwnLocks } {
    return this.locks.ownLocks(MOST_LISTED);
  }
}
