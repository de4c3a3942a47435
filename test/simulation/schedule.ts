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

interface Replacement {
  readonly lag: number;
  readonly connections: 'kept' | 'broken';
}

export type Fault =
  /** The server ends and comes back after `down` ms: with its data, without, or as it was `lag` ms before. */
  | (OnServer & {
      readonly kind: 'crash';
      readonly down: number;
      readonly data: 'kept' | 'lost' | 'stale';
      readonly lag: number;
    })
  /** Starts again after `down` ms, with everything that it has acknowledged. */
  | (OnServer & { readonly kind: 'durableRestart'; readonly down: number })
  /** Starts again without its data, and with a clock that is late by an hour and set before anything connects. */
  | (OnServer & { readonly kind: 'lateBoot'; readonly down: number })
  /** All masters lose their data within some milliseconds, and each comes back after `down` ms. */
  | (At & { readonly kind: 'loseAll'; readonly within: number; readonly down: number })
  /** A replica that is `lag` ms behind takes the server's place; a proxy may keep the connections. */
  | (OnServer & Replacement & { readonly kind: 'promote' })
  /**
   * The address leads to another server, which has run for long: an empty one, or one with what the old one had `lag` ms
   * before.
   */
  | (OnServer & Replacement & { readonly kind: 'spare'; readonly data: 'empty' | 'stale' })
  /** Becomes a replica of what was its replica, which is `lag` ms behind, and a primary again `lasts` ms later. */
  | (OnServer & Replacement & { readonly kind: 'failback'; readonly lasts: number })
  /** The memory of the server is what it was `lag` ms before; after a rollback, so is the clock of its machine. */
  | (OnServer & { readonly kind: 'clone' | 'rollback'; readonly lag: number })
  /** The address leads to the server of another master for a while. */
  | (OnServer & { readonly kind: 'twin'; readonly other: number; readonly lasts: number })
  | (OnServer & { readonly kind: 'attachReplica' })
  | (OnServer & { readonly kind: 'flush' | 'evict' | 'scriptFlush' })
  | (OnServer & { readonly kind: 'oom' | 'readonly' | 'hang'; readonly lasts: number })
  | (OnServer & { readonly kind: 'serverJump' | 'smallStep'; readonly by: number })
  | (OnLink & { readonly kind: 'partition'; readonly direction: 'out' | 'in' | 'both'; readonly lasts: number })
  | (OnLink & { readonly kind: 'cut'; readonly cut: Cut })
  | (OnLink & { readonly kind: 'slow'; readonly latency: number; readonly lasts: number })
  | (OnProcess & { readonly kind: 'pause' | 'suspend'; readonly lasts: number })
  | (OnProcess & { readonly kind: 'wallJump'; readonly by: number })
  /** A virtual machine is not run, and neither of its clocks notices. */
  | (OnProcess & { readonly kind: 'clientLag'; readonly lasts: number })
  /** Both clocks run slow by a share, as while they are corrected gently. */
  | (OnProcess & { readonly kind: 'slew'; readonly lasts: number; readonly by: number })
  /** Ends without a word, or after it has given everything back. */
  | (OnProcess & { readonly kind: 'die' | 'leave' });

export type LinkFault = Extract<Fault, { kind: 'partition' | 'cut' | 'slow' }>;
export type ProcessFault = Exclude<Extract<Fault, { readonly process: number }>, LinkFault>;
export type ServerFault = Exclude<Extract<Fault, { readonly server: number }>, LinkFault>;

export type FaultKind = Fault['kind'];

/** Clocks of a machine: how fast, and how wrong at the beginning. */
export interface ClockPlan {
  readonly rate: number;
  readonly offset: number;
}

export interface ServerPlan extends ClockPlan {
  readonly uptime: number;
  /** Whether processes that are gone have used it: its data carries their marker. Otherwise it is new. */
  readonly isKnown?: boolean;
}

export interface ProcessPlan extends ClockPlan {
  readonly startsAt: number;
  /** In place of that of all. */
  readonly maxTtl?: number;
  /** The masters in the order of its list, by their numbers. */
  readonly order?: readonly number[];
}

/** Everything that chance decides before a run begins; the rest follows from the seed. */
export interface Schedule {
  readonly seed: number;
  readonly options: RedlockOptions;
  /** Whether the masters keep whatever they have acknowledged, and the processes know that. */
  readonly durable?: boolean;
  readonly servers: readonly ServerPlan[];
  readonly processes: readonly ProcessPlan[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  /** Until when nothing else is asked for, where that is later than the last of them. */
  readonly until?: number;
  /** Most milliseconds that a message takes when nothing is wrong. */
  readonly latency: number;
}

/** When the last operation has begun and the last fault is over. */
export function endOf({ operations, faults, processes, until = 0 }: Schedule): number {
  const ends = faults.map(endOfFault);
  return Math.max(until, ...operations.map(({ at }) => at), ...ends, ...processes.map(({ startsAt }) => startsAt));
}

/** When a fault is over. */
export function endOfFault(fault: Fault): number {
  const { within = 0, lasts = 0, down = 0 } = fault as { within?: number; lasts?: number; down?: number };
  return fault.at + within + lasts + down;
}
