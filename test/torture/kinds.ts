/** One kind of fault, as far as the schedule needs to know it. */
export interface Kind {
  readonly target: 'master' | 'majority' | 'worker';
  /** Shortest and longest time until it is healed, in milliseconds. */
  readonly lasts: readonly [number, number];
  /** The masters forget, or their keys expire early. Their votes do not count for a while. */
  readonly forgets?: true;
  /** A new process connects to the masters. */
  readonly newWorker?: true;
}

/** Faults during which at most one section believes that it holds a lock. */
export const KEPT = {
  'kill -9, back at once': { target: 'master', lasts: [0, 0], forgets: true },
  'kill -9, back later': { target: 'master', lasts: [100, 900], forgets: true },
  'kill -9 of a majority': { target: 'majority', lasts: [0, 300], forgets: true },
  FLUSHALL: { target: 'master', lasts: [0, 0], forgets: true },
  'FLUSHALL of a majority': { target: 'majority', lasts: [0, 0], forgets: true },
  'FLUSHALL met by a new process': { target: 'majority', lasts: [0, 0], forgets: true, newWorker: true },
  'master stopped': { target: 'master', lasts: [100, 2_000] },
  'connections refused': { target: 'master', lasts: [100, 1_000] },
  'connections reset': { target: 'master', lasts: [0, 0] },
  'connections half-open': { target: 'master', lasts: [200, 1_500] },
  'black hole': { target: 'master', lasts: [100, 1_500] },
  'requests lost': { target: 'master', lasts: [100, 1_000] },
  'replies lost': { target: 'master', lasts: [100, 1_000] },
  'everything late': { target: 'master', lasts: [200, 2_000] },
  'slow bytes': { target: 'master', lasts: [200, 1_500] },
  'CLIENT KILL': { target: 'master', lasts: [0, 0] },
  'SCRIPT FLUSH': { target: 'master', lasts: [0, 0] },
  'out of memory': { target: 'master', lasts: [200, 1_500] },
  'read-only replica': { target: 'master', lasts: [200, 1_500] },
  'writes refused': { target: 'master', lasts: [200, 1_500] },
  'worker stopped': { target: 'worker', lasts: [100, 2_500] },
  'holder stopped before its write': { target: 'worker', lasts: [600, 2_500] },
  'worker killed': { target: 'worker', lasts: [0, 0], newWorker: true },
} as const satisfies Record<string, Kind>;

/** Faults that no lock over these servers can survive. Fencing tokens must still be correct, and nothing may hang. */
export const BROKEN = {
  'keys deleted by an operator': { target: 'majority', lasts: [0, 0] },
} as const satisfies Record<string, Kind>;

export type FaultKind = keyof typeof KEPT | keyof typeof BROKEN;

export const KINDS: Readonly<Record<FaultKind, Kind>> = { ...KEPT, ...BROKEN };
