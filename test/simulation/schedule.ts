import type { RedlockOptions } from '../../lib/core/options.js';
import type { Cut } from './network/connection.js';

/** What one process does with one lock. Times in milliseconds. */
export interface Operation {
  readonly at: number;
  readonly process: number;
  readonly resources: readonly string[];
  readonly ttl: number;
  readonly wait: number;
  readonly extend: boolean;
  readonly minHold: number;
  /** How long the work takes. */
  readonly work: number;
  /** After what share of the work its fencing token is asked for; `undefined` if it is not. */
  readonly tokenAt: number | undefined;
  /** A new ttl, half-way through the work. */
  readonly newTtl: number | undefined;
  /** Gives up waiting after that. */
  readonly abortAfter: number | undefined;
}

interface At {
  readonly at: number;
}

interface OnServer extends At {
  readonly server: number;
}

interface OnProcess extends At {
  readonly process: number;
}

interface OnLink extends OnServer, OnProcess {}

export type Fault =
  /** The server ends and comes back after `down` ms: with its data, without, or as it was `lag` ms before. */
  | (OnServer & {
      readonly kind: 'crash';
      readonly down: number;
      readonly data: 'kept' | 'lost' | 'stale';
      readonly lag: number;
    })
  /** A replica that is `lag` ms behind takes the server's place; a proxy may keep the connections. */
  | (OnServer & { readonly kind: 'promote'; readonly lag: number; readonly connections: 'kept' | 'broken' })
  | (OnServer & { readonly kind: 'flush' | 'evict' | 'scriptFlush' })
  | (OnServer & { readonly kind: 'oom' | 'readonly' | 'hang'; readonly lasts: number })
  | (OnServer & { readonly kind: 'serverJump'; readonly by: number })
  | (OnLink & { readonly kind: 'partition'; readonly direction: 'out' | 'in' | 'both'; readonly lasts: number })
  | (OnLink & { readonly kind: 'cut'; readonly cut: Cut })
  | (OnLink & { readonly kind: 'slow'; readonly latency: number; readonly lasts: number })
  | (OnProcess & { readonly kind: 'pause' | 'suspend'; readonly lasts: number })
  | (OnProcess & { readonly kind: 'wallJump'; readonly by: number })
  | (OnProcess & { readonly kind: 'die' });

export type ProcessFault = Extract<Fault, { kind: 'pause' | 'suspend' | 'wallJump' | 'die' }>;
export type LinkFault = Extract<Fault, { kind: 'partition' | 'cut' | 'slow' }>;
export type ServerFault = Exclude<Fault, ProcessFault | LinkFault>;

export type FaultKind = Fault['kind'];

/** Clocks of a machine: how fast, and how wrong at the beginning. */
export interface ClockPlan {
  readonly rate: number;
  readonly offset: number;
}

/** Everything that chance decides before a run begins; the rest follows from the seed. */
export interface Schedule {
  readonly seed: number;
  readonly options: RedlockOptions;
  readonly servers: readonly (ClockPlan & { readonly uptime: number })[];
  readonly processes: readonly (ClockPlan & { readonly startsAt: number })[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  /** Most milliseconds that a message takes when nothing is wrong. */
  readonly latency: number;
}

/** When the last operation has begun and the last fault is over. */
export function endOf({ operations, faults, processes }: Schedule): number {
  const ends = faults.map(
    (fault) => fault.at + ('lasts' in fault ? fault.lasts : 0) + ('down' in fault ? fault.down : 0),
  );
  return Math.max(0, ...operations.map(({ at }) => at), ...ends, ...processes.map(({ startsAt }) => startsAt));
}
