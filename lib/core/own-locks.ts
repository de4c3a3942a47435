/** A lock that this process holds or waits for. */
export interface OwnLock {
  readonly resources: readonly string[];
  /** When it was acquired, or when the wait began, in milliseconds since the Unix epoch. */
  readonly since: number;
  /** Absent for an exclusive lock and for a permit. */
  readonly mode?: 'shared';
  /** The slot of the permit; absent for a lock, and while it is waited for. */
  readonly slot?: number;
  /** The number of permits of which one is waited for; absent for a lock, and for what is held. */
  readonly permits?: number;
}

/** Some locks, the oldest first. */
export interface OwnLocks {
  /** Number of all of them. */
  readonly count: number;
  readonly locks: readonly OwnLock[];
}

/** The first locks of a list that is in their order. */
export function listOwn<T>(all: readonly T[], most: number, show: (one: T) => OwnLock): OwnLocks {
  return { count: all.length, locks: all.slice(0, most).map(show) };
}
