import { WRITER_LIFE, RESERVATION_SCALE } from '../../../lib/masters/master.interface.js';
import { QUEUE_LIFE } from '../../../lib/redis/scripts/constants.js';
import { QUARANTINED } from '../../../lib/redis/scripts/replies.js';
import type { OperationContext } from '../../../lib/memory/memory-database.js';
import { GATE_MARK } from '../../../lib/redis/replies.js';
import { type Database, ReplyError } from './database.js';

// The restart gate of lib/redis/scripts/gate.lua, written a second time in another language. The other operations are
// in lib/memory/operations.ts, which masters in memory share. A change of a script must change its operation, too:
// model.spec.ts runs both on the same traces and compares them.

/** Lifetimes in milliseconds, as in the scripts: of a queue and of a writer key. That of a reservation is a share of `reservation`. */
export const LIVES: OperationContext['lives'] = {
  reservation: RESERVATION_SCALE,
  queue: QUEUE_LIFE,
  writer: WRITER_LIFE,
};

/** Seeded faults in a script. Each corresponds to a mutant of the script. */
export const MODEL_FAULTS = [
  'run-not-compared',
  'missing-marker-taken-for-one',
  'marker-not-written',
  'marker-written-again',
  'wait-too-short',
  'quarantine-not-kept',
  'gate-open',
  'floor-ignored',
  'state-of-other-data-written',
] as const;
export type ModelFault = (typeof MODEL_FAULTS)[number];

export interface Surface {
  readonly data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly lives: OperationContext['lives'];
  /** Wall clock of the server, in microseconds. */
  readonly time: () => number;
  /** Identifies the process of the server. */
  readonly run: string;
  /** Returns the number of receivers. */
  readonly publish: (channel: string, message: string) => number;
  /** A request was refused by the gate, or has passed it. */
  readonly noteGate?: (hasPassed: boolean) => void;
}

export interface GateCall {
  /** Empty without the guard. */
  readonly marker: string;
  readonly maxTtl: number;
  readonly isFirst: boolean;
}

export class Gate {
  from: string | undefined;
  cause: 'restart' | 'new' | undefined;
  /** Milliseconds until the server votes; `undefined` before the first request that asks. */
  private left: number | undefined;

  constructor(
    private readonly server: Surface,
    private readonly call: GateCall,
  ) {}

  get hasPassed(): boolean {
    return this.left === 0;
  }

  /** @throws {ReplyError} if the server refuses to write the marker */
  get wait(): number {
    const { server, call } = this;
    this.left ??= call.marker === '' || server.faults.has('gate-open') ? 0 : this.compared();
    if (call.marker !== '') server.noteGate?.(this.left === 0);
    return this.left;
  }

  get refusal(): string | undefined {
    const { wait } = this;
    return wait > 0 ? `${QUARANTINED} ${wait.toFixed(0)}` : undefined;
  }

  private compared(): number {
    try {
      return this.compare();
    } catch (error) {
      throw error instanceof ReplyError ? new ReplyError(GATE_MARK + error.message) : error;
    }
  }

  private compare(): number {
    const { data, faults, run, time } = this.server;
    const { marker, maxTtl, isFirst } = this.call;
    const now = Math.floor(time() / 1_000);
    this.from = data.hget(marker, 'from');
    const isMissing = this.from === undefined;
    if (isMissing && faults.has('missing-marker-taken-for-one')) return 0;
    const isCompared = isFirst && !faults.has('run-not-compared');
    const isOther = isCompared && (run !== data.hget(marker, 'run') || faults.has('marker-written-again'));
    if (isMissing || isOther) {
      this.cause = isMissing ? 'new' : 'restart';
      this.from = (now + maxTtl * (faults.has('wait-too-short') ? 0.1 : 1)).toFixed(0);
      if (!faults.has('marker-not-written')) {
        data.hset(marker, 'run', run);
        data.hset(marker, 'from', this.from);
      }
    }
    return faults.has('quarantine-not-kept') ? 0 : Math.max(0, Number(this.from) - now);
  }
}
