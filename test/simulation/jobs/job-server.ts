import { Keyspace } from '../../../lib/settings/keyspace.js';
import type { MasterReply, MasterRequest } from '../../../lib/masters/master.interface.js';
import { entryFrom } from '../../../lib/fencing/state-entry.js';
import type { OperationContext } from '../../../lib/memory/memory-database.js';
import { carryOut, carryOutState, type StateContext } from '../../../lib/memory/operations.js';
import type { MachineClock } from '../engine/machine-clock.js';
import type { Scheduler } from '../engine/scheduler.js';
import { Database, protect } from '../server/database.js';
import { LIVES } from '../server/operations.js';

const UNMARKED: MasterReply = Object.freeze({ kind: 'refused', code: 'UNMARKED', reason: 'its data was lost' });
const { counters } = new Keyspace('lock:');
/** For how long the masters have voted at the beginning, in milliseconds: longer than any tick is late. */
const AGE = 24 * 3_600_000;

/** What a connection learns about the data of a server. */
export interface DataReport {
  readonly marker: string;
  /** End of the quarantine, in true time. */
  readonly votesFrom: number;
}

export type Subscriber = (key: string) => void;

/**
 * A master with the operations of the real scripts. The rules of the restart guard have a simulation of their own; here
 * they are an oracle: new data votes after the longest ttl, and requests meant for other data are refused.
 */
export class JobServer {
  readonly subscribers = new Map<string, Subscriber>();
  isUp = true;
  marker: string;
  votesFrom = -Infinity;
  private losses = 0;
  private data: Database;
  private older: { readonly at: number; readonly remains: ReturnType<Database['copy']> }[] = [];
  private readonly context: OperationContext;

  constructor(
    readonly name: string,
    readonly clock: MachineClock,
    private readonly scheduler: Scheduler,
    /** How long new data does not vote, in milliseconds. */
    private readonly quarantine: number,
  ) {
    this.data = new Database(() => this.wall);
    this.marker = this.markerSince(this.wall - AGE);
    this.context = this.contextOf();
  }

  get report(): DataReport {
    return { marker: this.marker, votesFrom: this.votesFrom };
  }

  get isQuarantined(): boolean {
    return this.scheduler.now < this.votesFrom;
  }

  /** Whether it has lost an entry that was not rewritten since. */
  hasLost(entry: string): boolean {
    const stored = entryFrom(this.data.get(entry) ?? '')?.stored;
    return stored ? stored.marker !== this.marker : this.losses > 0;
  }

  /** Carries out a request that was meant for the data with this marker. */
  answer(request: MasterRequest, marker: string): MasterReply {
    this.data.begin();
    const isMeant = marker === this.marker;
    switch (request.op) {
      case 'acquire':
      case 'pick':
      case 'draw':
        if (!isMeant) return UNMARKED;
        return this.isQuarantined ? this.quarantined : carryOut(this.context, request);
      case 'extend': {
        if (!isMeant) return UNMARKED;
        const reply = carryOut(this.context, request);
        return this.isQuarantined && reply.kind === 'granted' ? this.quarantined : reply;
      }
      case 'release':
      case 'defer-readers':
      case 'leave':
      case 'inspect':
      case 'probe':
        return carryOut(this.context, request);
      case 'open-state':
      case 'write-state': {
        if (request.marker !== this.marker) return UNMARKED;
        const changed = carryOutState(this.states, request);
        this.remember();
        return changed;
      }
      case 'read-state':
        return carryOutState(this.states, request);
    }
  }

  /** Its data begins anew: empty, or as it was `lag` milliseconds ago. */
  lose(lag: number): void {
    const { now } = this.scheduler;
    const remains = this.older.findLast(({ at }) => at <= now - lag)?.remains ?? new Map();
    this.data = new Database(() => this.wall, lag === Infinity ? new Map() : new Map(remains));
    Object.assign(this.context, { data: this.data });
    this.older = [];
    this.losses++;
    this.quarantineNow();
  }

  /** New data votes after the longest ttl, and its marker says since when. */
  quarantineNow(): void {
    this.votesFrom = this.scheduler.now + this.quarantine;
    this.marker = this.markerSince(this.wall + this.quarantine);
  }

  private get quarantined(): MasterReply {
    const remaining = this.votesFrom - this.scheduler.now;
    return { kind: 'quarantined', reason: 'its data is new', remaining };
  }

  private get states(): StateContext {
    const { data, marker } = this;
    return { data, marker };
  }

  private markerSince(moment: number): string {
    return `${this.name}-${this.losses}@${Math.ceil(moment)}`;
  }

  private get wall(): number {
    return Math.floor(this.clock.wallTime);
  }

  /** The state that a replica or a disk may have kept. */
  private remember(): void {
    this.older.push({ at: this.scheduler.now, remains: this.data.copy() });
    if (this.older.length > 8) this.older.shift();
  }

  private contextOf(): OperationContext {
    return {
      ...{ data: this.data, counters, lives: LIVES, attempt: protect },
      now: () => this.wall,
      microseconds: () => this.wall * 1_000,
      publish: (waiter, key) => {
        const subscriber = this.subscribers.get(waiter);
        subscriber?.(key);
        return subscriber ? 1 : 0;
      },
    };
  }
}
