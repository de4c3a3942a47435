import type { RedlockOptions } from '../../lib/settings/options.js';
import type { Cut } from './network/connection.js';

export interface StatePlan {
  /** The fraction of the work after which it begins. */
  readonly at: number;
  readonly steps: readonly ('get' | 'set')[];
  /** Milliseconds from the end of one step to the next. */
  readonly pause: number;
}

/** What one process does with one lock. Times are in milliseconds. */
export interface Operation {
  readonly at: number;
  readonly process: number;
  readonly resources: readonly string[];
  readonly ttl: number;
  readonly wait: number;
  readonly extend: boolean;
  readonly minHold: number;
  readonly work: number;
  /** The fraction of the work after which it requests its fencing token; `undefined` if it does not. */
  readonly tokenAt: number | undefined;
  /** A new ttl half-way through the work. */
  readonly newTtl: number | undefined;
  /** Milliseconds for which the caller blocks its event loop, when it has asked for the lock, has it, or has asked to release it. */
  readonly blocks?: { readonly when: 'asked' | 'held' | 'released'; readonly lasts: number };
  /** Number of asynchronous functions of the application between its work and the library. */
  readonly functions?: number;
  readonly abortAfter: number | undefined;
  /** For a single resource; it does not use the state without it. */
  readonly state?: StatePlan;
  /** Without it, the lock is exclusive. */
  readonly mode?: 'shared';
  /** The number of permits of a single resource; without it, the operation wants a lock. */
  readonly permits?: number;
  /** What its work asks for while it has the lock. It releases the lock when both are over. */
  readonly inner?: InnerOperation;
}

/** An operation in the call chain of another one, which has its lock. */
export interface InnerOperation extends Omit<Operation, 'at' | 'process'> {
  /** Milliseconds since the work of the outer one has begun. */
  readonly after: number;
}

/** What an operation competes for. The permits of a resource have nothing to do with its lock. */
export function claimsOf({ resources, permits }: Pick<Operation, 'resources' | 'permits'>): readonly string[] {
  return permits === undefined ? resources : resources.map((resource) => `a permit of ${resource}`);
}

/** How long an operation may take, with all that its work asks for. */
export function longestOf({ wait, work, inner }: Omit<Operation, 'at' | 'process'>): number {
  return wait + work + (inner ? longestOf(inner) : 0);
}

export function areRivals(one: Operation, other: Operation): boolean {
  const claims = claimsOf(other);
  return claimsOf(one).some((claim) => claims.includes(claim));
}

/** Whether two operations may hold the same lock at a time. */
export function areShared(one: Operation, other: Operation): boolean {
  return one.mode === 'shared' && other.mode === 'shared';
}

/** Whether an operation wants an exclusive lock, as all did before there were shared ones. */
export function isExclusive({ mode, permits }: Operation): boolean {
  return mode === undefined && permits === undefined;
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
  /**
   * The server ends and comes back after `down` ms: with its data, without it, or with the state of `lag` ms before. It has no
   * memory for writes in its first `full` ms.
   */
  | (OnServer & {
      readonly kind: 'crash';
      readonly down: number;
      readonly data: 'kept' | 'lost' | 'stale';
      readonly lag: number;
      readonly full?: number;
    })
  /** All masters lose their data within `within` ms, and each comes back after `down` ms. */
  | (At & { readonly kind: 'loseAll'; readonly within: number; readonly down: number })
  /**
   * The address leads to another server: an empty one, or one with the data that the old one had `lag` ms before. The clock of
   * its machine may be ahead of the one before, or behind it. A proxy may keep the connections.
   */
  | (OnServer & {
      readonly kind: 'spare';
      readonly lag: number;
      readonly data: 'empty' | 'stale';
      readonly connections: 'kept' | 'broken';
      readonly ahead?: number;
    })
  /** The address leads to the server of another master for a while. */
  | (OnServer & { readonly kind: 'twin'; readonly other: number; readonly lasts: number })
  | (OnServer & { readonly kind: 'flush' | 'evict' | 'unmark' | 'scriptFlush' })
  | (OnServer & { readonly kind: 'oom' | 'readonly' | 'hang'; readonly lasts: number })
  | (OnServer & { readonly kind: 'serverJump'; readonly by: number })
  | (OnLink & { readonly kind: 'partition'; readonly direction: 'out' | 'in' | 'both'; readonly lasts: number })
  | (OnLink & { readonly kind: 'cut'; readonly cut: Cut })
  | (OnLink & { readonly kind: 'slow'; readonly latency: number; readonly least?: number; readonly lasts: number })
  /** What is sent over the connections of this moment arrives `lasts` ms later. New connections are not affected. */
  | (OnLink & { readonly kind: 'late'; readonly direction: 'out' | 'in' | 'both'; readonly lasts: number })
  /** The client replaces its connection. What it has sent over the old one just before arrives `lasts` ms later. */
  | (OnLink & { readonly kind: 'orphan'; readonly lasts: number })
  /** From now on, packets of the connections to these servers vanish in both directions, and neither side notices. */
  | (OnProcess & { readonly kind: 'halfOpen'; readonly servers: readonly number[] })
  /** With `stun`, a virtual machine does not run, and both of its clocks stop. */
  | (OnProcess & { readonly kind: 'pause' | 'suspend' | 'stun'; readonly lasts: number })
  | (OnProcess & { readonly kind: 'wallJump'; readonly by: number })
  /** Both clocks run slow by a fraction, as when they are corrected gradually. */
  | (OnProcess & { readonly kind: 'slew'; readonly lasts: number; readonly by: number })
  /** The monotonic clock jumps forward, and then runs slow for `lasts` ms until it is right again; never if they are 0. */
  | (OnProcess & { readonly kind: 'stumble'; readonly by: number; readonly lasts: number })
  /** Ends without cleaning up, or after it has released everything. */
  | (OnProcess & { readonly kind: 'die' | 'leave' });

export type LinkFault = Extract<Fault, { kind: 'partition' | 'cut' | 'slow' | 'late' | 'orphan' }>;
export type ProcessFault = Exclude<Extract<Fault, { readonly process: number }>, LinkFault>;
export type ServerFault = Exclude<Extract<Fault, { readonly server: number }>, LinkFault>;

export type FaultKind = Fault['kind'];

/** Clocks of a machine: their rate, and their error at the beginning. */
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
  readonly maxTtl?: number;
  /** The masters in the order of its list, by number. While a master is added, some lists lack it. */
  readonly order?: readonly number[];
}

/** All random decisions that are made before a run begins. The rest follows from the seed. */
export interface Schedule {
  readonly seed: number;
  readonly options: RedlockOptions;
  readonly servers: readonly ServerPlan[];
  readonly processes: readonly ProcessPlan[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  /** The run stays idle until then, if this is later than the end of the last operation and fault. */
  readonly until?: number;
  /** Longest delay of a message without faults, in milliseconds. */
  readonly latency: number;
}

/** When the last operation has begun and the last fault is over. */
export function endOf({ operations, faults, processes, until = 0 }: Schedule): number {
  const ends = faults.map(endOfFault);
  return Math.max(until, ...operations.map(({ at }) => at), ...ends, ...processes.map(({ startsAt }) => startsAt));
}

export function endOfFault(fault: Fault): number {
  const { within = 0, lasts = 0, down = 0 } = fault as { within?: number; lasts?: number; down?: number };
  return fault.at + within + lasts + down;
}
