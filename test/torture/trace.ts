import { openSync, writeSync } from 'node:fs';
import { type LockMode } from '../../lib/settings/options.js';

/** Milliseconds of the machine's monotonic clock, which all processes share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Of a scheduled job, in milliseconds. */
export const LONGEST_RUN = 400;

/** Writes at once, so that a SIGKILL loses nothing. */
export function recorder(path: string): (event: object) => void {
  const file = openSync(path, 'a');
  return (event) => void writeSync(file, `${JSON.stringify(event)}\n`);
}

/** @param text of a trace: a killed process may leave half a line */
export function eventsIn<Event>(text: string): Event[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Event);
}

/** Milliseconds. */
const PERIOD = 5;
/** A delay of at most this much is normal for a timer among others, in milliseconds. */
const TOLERANCE = 2 * PERIOD;
/** How long beats are remembered, in milliseconds: longer than any pause and any operation. */
const MEMORY = 60_000;

/**
 * Measures for how long this process did not run, because it was stopped, or because the machine or its own work was in
 * the way.
 */
class Pulse {
  /** Only the gaps are stored, because most beats are on time. */
  private readonly gaps: { readonly from: number; readonly to: number }[] = [];
  private last = now();

  constructor() {
    setInterval(() => this.beat(), PERIOD).unref();
  }

  /** Milliseconds without execution between two times. The later one must not be before the last beat. */
  stalledBetween(from: number, to: number): number {
    const open = { from: this.last + PERIOD, to };
    const gaps = to - this.last > TOLERANCE ? [...this.gaps, open] : this.gaps;
    return gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.to, to) - Math.max(gap.from, from)), 0);
  }

  private beat(): void {
    const at = now();
    if (at - this.last > TOLERANCE) this.gaps.push({ from: this.last + PERIOD, to: at });
    this.last = at;
    while (this.gaps[0] && this.gaps[0].to < at - MEMORY) this.gaps.shift();
  }
}

type Operation = 'acquire' | 'extend' | 'token' | 'release' | 'close';

/** What a section asked for. */
export interface Claim {
  readonly keys: readonly string[];
  readonly mode: LockMode;
  /** How many sections may have a permit at the same time; absent for locks. */
  readonly permits?: number | undefined;
}

/**
 * What a worker records about itself. `at` is read before an action that could be late: before the lock is looked at,
 * and before a release is called. For a report to the worker, it is read afterwards.
 */
export type TraceEvent =
  | { readonly kind: 'ready' | 'closed'; readonly at: number }
  /** An operation began that must settle within `within` milliseconds. */
  | {
      readonly kind: 'asked';
      readonly op: Operation;
      readonly id: number;
      readonly at: number;
      readonly within: number;
    }
  /** The operation settled. For `stalled` milliseconds in between, the process did not run. */
  | {
      readonly kind: 'settled';
      readonly id: number;
      readonly at: number;
      readonly stalled: number;
      readonly how: string;
    }
  /** A lock was granted. Unless it is extended, its holder may rely on it until `until`. */
  | (Claim & {
      readonly kind: 'granted';
      readonly section: string;
      readonly asked: number;
      readonly at: number;
      readonly until: number;
    })
  /** The holder looked. It may rely on the lock until `until`. */
  | { readonly kind: 'looked'; readonly section: string; readonly at: number; readonly until: number }
  | { readonly kind: 'token'; readonly section: string; readonly at: number; readonly token: number }
  /**
   * The signal of the lock aborted, or its holder is about to release it. `due` is the end of the validity, if known.
   */
  | {
      readonly kind: 'lost' | 'left';
      readonly section: string;
      readonly at: number;
      readonly due?: number | undefined;
      readonly stalled: number;
      readonly why: string;
    }
  | { readonly kind: 'unhandled'; readonly at: number; readonly message: string };

/** `Omit` for each member of a union. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** Writes a worker's events. */
export class Trace {
  private lastId = 0;
  private readonly pulse = new Pulse();

  constructor(readonly say: (event: TraceEvent) => void) {}

  /** Records an event now, with the time during which the process did not run since `due`. */
  saySince(due: number | undefined, event: Without<Extract<TraceEvent, { kind: 'lost' | 'left' }>, 'at' | 'stalled'>) {
    const at = now();
    this.say({ ...event, at, due, stalled: due === undefined ? 0 : this.pulse.stalledBetween(due, at) });
  }

  /** Records the start of an operation. The result records how it settled. */
  ask(op: Operation, within: number): Asked {
    const id = ++this.lastId;
    const at = now();
    this.say({ kind: 'asked', op, id, at, within });
    let open = true;
    const settle = (how: string): void => {
      if (!open) return;
      open = false;
      const end = now();
      this.say({ kind: 'settled', id, at: end, stalled: this.pulse.stalledBetween(at, end), how });
    };
    return { at, settle };
  }
}

interface Asked {
  readonly at: number;
  /** Only the first call counts. */
  settle(how: string): void;
}
