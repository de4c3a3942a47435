import type { JobPolicy } from '../../../lib/schedule/job-policy.js';
import type { Stop } from '../engine/process.js';

/** A moment in what an instance does with the lock and the record of the job. */
export type Point =
  | 'asks for the lock'
  | 'opens the record'
  | 'has read the record'
  | 'stores a start'
  | 'runs'
  | 'has run'
  | 'stores an end'
  | 'releases the lock';

/** What happens to an instance. `actor`: the one that reached the point at which the fault is planned. */
export type Target = number | 'actor';

/** What goes wrong. Durations are in milliseconds; an instance that stays away has `Infinity`. */
export type FaultAction =
  | {
      readonly kind: 'crash';
      readonly instance: Target;
      /** What a process has sent still arrives; what a machine has sent may not have left it. */
      readonly what: 'process' | 'machine';
      readonly awayFor: number;
    }
  /** Stops its jobs, waits for them for `grace`, releases everything, and ends. */
  | { readonly kind: 'shutdown'; readonly instance: Target; readonly grace: number; readonly awayFor: number }
  | { readonly kind: 'pause'; readonly instance: Target; readonly lasts: number; readonly how: Exclude<Stop, 'stun'> }
  | {
      readonly kind: 'partition';
      readonly instance: Target;
      readonly masters: readonly number[];
      readonly direction: 'out' | 'in' | 'both';
      readonly lasts: number;
    }
  /** The master restarts without its data or with that of `lag` ms before; or its data is deleted in place. */
  | {
      readonly kind: 'loss';
      readonly master: number;
      readonly data: 'empty' | 'stale' | 'flushed';
      readonly lag: number;
      readonly down: number;
    }
  /** More masters than the stated condition allows lose their data. */
  | { readonly kind: 'great loss'; readonly down: number };

export interface Fault {
  /** In true time, or the `nth` time that an instance reaches a point: just before it, or `delay` ms later. */
  readonly when: { readonly at: number } | { readonly point: Point; readonly nth: number; readonly delay: number };
  readonly action: FaultAction;
}

export interface MachinePlan {
  /** Seconds per second of true time. */
  readonly rate: number;
  /** Milliseconds by which it is ahead. */
  readonly offset: number;
}

export interface InstancePlan extends MachinePlan {
  readonly startsAt: number;
}

export interface WorkPlan {
  /** Bounds of its duration, in milliseconds; each order of magnitude is equally likely. */
  readonly least: number;
  readonly most: number;
  /** Probability that it ends with an error. */
  readonly fails: number;
  /** Probability that it ends with an error as soon as its signal aborts, or notices it half-way. */
  readonly minds: number;
}

export type SchedulePlan =
  | { readonly kind: 'interval'; readonly period: number }
  | { readonly kind: 'cron'; readonly expression: string; readonly timeZone: string };

/** All random decisions that are made before a run begins. The rest follows from the seed. */
export interface JobsPlan {
  readonly seed: number;
  readonly masters: readonly MachinePlan[];
  readonly instances: readonly InstancePlan[];
  readonly schedule: SchedulePlan;
  readonly policy: JobPolicy;
  /** True time at the beginning, in milliseconds since the epoch. */
  readonly startsAt: number;
  /** How long faults can happen, in milliseconds. */
  readonly lasts: number;
  readonly ttl: number;
  readonly latency: number;
  readonly work: WorkPlan;
  readonly faults: readonly Fault[];
}
