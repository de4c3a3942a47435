// Schedules that are written by hand. Only delays are random.
import type { RedlockOptions } from '../../lib/settings/options.js';
import type { Fault, Operation, ProcessPlan, Schedule } from './schedule.js';

export const [A, B, C, D] = [0, 1, 2, 3];
export const MASTERS = [A, B, C];
export const SECONDS = 1_000;
const TEN: RedlockOptions = { ttl: '10s', maxTtl: '10s' };

export interface Course {
  readonly options?: RedlockOptions;
  readonly processes: readonly Partial<ProcessPlan>[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  readonly offsets?: readonly number[];
  /** Whether the masters are in use at the beginning. */
  readonly isKnown?: boolean;
  readonly until?: number;
}

/** Three masters, perfect clocks and a fast network, except for what the course changes. */
export function schedule(seed: number, { options = TEN, processes, operations, faults, ...more }: Course): Schedule {
  const { offsets = [0, 0, 0], isKnown = true, until } = more;
  return {
    ...{ seed, options, operations, faults, latency: 0.5 },
    ...(until !== undefined && { until }),
    servers: offsets.map((offset) => ({ rate: 1, offset, uptime: 100_000, isKnown })),
    processes: processes.map((plan) => ({ rate: 1, offset: 0, startsAt: 0, ...plan })),
  };
}

export function lock(process: number, at: number, how: Partial<Operation> = {}): Operation {
  return {
    ...{ process, at, resources: ['a'], ttl: 10 * SECONDS, wait: 0, extend: false, minHold: 0, work: 8 * SECONDS },
    ...{ tokenAt: undefined, newTtl: undefined, abortAfter: undefined, ...how },
  };
}

/** Cuts a process off from one master for a while. Its messages arrive afterwards. */
export function apart(process: number, server: number, at: number, lasts: number): Fault {
  return { kind: 'partition', at, process, server, lasts, direction: 'both' };
}

export function cut(process: number, server: number, at: number): Fault {
  return { kind: 'cut', at, process, server, cut: 'now' };
}
