import type { LockLostError } from '../redlock/errors.js';
import type { LockHolder } from '../redlock/holder.js';

/** The leader of an election, as its lock names it. */
export interface LeaderReport<T = unknown> {
  /** The `instance` of its module. */
  readonly instance: string;
  /** When its campaign began, by its own clock: long before it was elected, if it had to wait. */
  readonly since: Date;
  /** Its term; `undefined` while it has not been stored. */
  readonly term: number | undefined;
  /** Its decorator, class and method; `undefined` while its term is unknown. */
  readonly method: string | undefined;
  /** What its option `data` gave; `undefined` without one, and while its term is unknown. */
  readonly data: T | undefined;
}

/**
 * Receives what happens to the elections of this instance. Called synchronously: `elected`, then one of `resigned` and
 * `lost`, before the next `elected` of that name. What it throws is logged, and affects nothing else.
 */
export interface ElectionObserver {
  /**
   * This instance leads from now on: `isLeader` is true, and the method is about to be called.
   *
   * @param taken milliseconds from the grant of the lock
   */
  elected?(election: string, term: number, taken: number): void;
  /**
   * This instance does not lead any more, because the method is over. The lock is released next.
   *
   * @param error what the method has thrown, unless it was the reason of its signal
   */
  resigned?(election: string, term: number, error?: unknown): void;
  /** This instance does not lead any more, because it has lost the lock. The signal of the method aborts next. */
  lost?(election: string, term: number, error: LockLostError): void;
  /** A method goes on a second after the loss: this instance does not campaign again before it has ended. */
  overrun?(election: string, term: number): void;
  /** Another instance leads, as this one has seen while it waits. Terms only grow. */
  changed?(election: string, leader: LeaderReport): void;
  /** Something went wrong, such as the masters not giving a term. It is tried again, unless it is a configuration error. */
  problem?(election: string, cause: unknown): void;
}

// The state of the lock of an election. `since` is that of the holder in its key, in milliseconds since the epoch.
interface LeaderRecord {
  readonly term: number;
  readonly instance: string;
  readonly since: number;
  readonly method?: string;
  readonly data?: unknown;
}

// The key names the holder of the lock now. The state is that of the last leader that could store it.
export function leaderFrom({ instance, since }: LockHolder, state: unknown): LeaderReport {
  const record = state as Partial<LeaderRecord> | null | undefined;
  const isSame = record?.instance === instance && record.since === since.getTime();
  const { term, method, data }: Partial<LeaderRecord> = isSame && typeof record.term === 'number' ? record : {};
  return { instance, since, term, method, data };
}
