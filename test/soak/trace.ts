import { type ElectionLine } from '../torture/leader/verdict.mjs';
import { type TraceEvent } from '../torture/trace.js';

/** `Omit` for each member of a union. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** What an instance records beside its sections. `at` is the monotonic clock, which all processes of a machine share. */
export type SoakEvent =
  | Extract<TraceEvent, { kind: 'granted' | 'looked' }>
  | (Omit<Extract<TraceEvent, { kind: 'lost' | 'left' }>, 'kind'> & { readonly kind: 'lost' })
  | (TickEvent & { readonly kind: 'tick' })
  | { readonly kind: 'election'; readonly line: Without<ElectionLine, 'instance'> }
  /** The process did not run. */
  | { readonly kind: 'stalled'; readonly from: number; readonly at: number }
  | { readonly kind: 'heap'; readonly at: number; readonly bytes: number }
  | { readonly kind: 'unhandled'; readonly at: number; readonly message: string }
  /** What has happened in a fenced transaction. */
  | { readonly kind: 'counted'; readonly what: string }
  /** The application has closed; what was there then and not before it was created. */
  | { readonly kind: 'closed'; readonly at: number; readonly left: readonly string[] };

/** From how long on it is told that a process did not run, or that Redis did not answer, in milliseconds. */
export const STALL = 200;

export interface TickEvent {
  readonly event: 'start' | 'end' | 'aborted';
  readonly job: string;
  /** Nominal time, in milliseconds since the epoch. */
  readonly tick: number;
  readonly attempt: number;
  readonly at: number;
}

/** What an instance is started with. */
export interface Task {
  readonly instance: string;
  readonly trace: string;
  readonly masters: readonly string[];
  /** Of a scheduled job, and of a leader, in milliseconds. */
  readonly ttl: number;
  /** What an instance of the torture has to do. */
  readonly duty: 'job' | 'leader';
  readonly postgres: string;
  /** `false`: a control, in which the checks have to find something. */
  readonly locks: boolean;
}
