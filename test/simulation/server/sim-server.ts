import type { MachineClock } from '../engine/machine-clock.js';
import { type Executor, execute, type ServerInfo } from './commands.js';
import { CLAIMED, OTHER_MARKER } from '../../../lib/redis/scripts/replies.js';
import { Database, ReplyError } from './database.js';
import { LIVES, type ModelFault } from './operations.js';

/** Before the beginning of a schedule, in milliseconds. */
const LONG_AGO = 60_000;

/** The data that is left on disk or in a copy when a server is replaced. */
export type Remains = ReturnType<Database['copy']>;

export interface Peer {
  readonly push: (channel: string, message: string) => void;
}

/** A member that a command with these words adds to a sorted set. */
export interface Addition {
  readonly key: string;
  readonly member: string;
  readonly words: readonly (string | number)[];
  readonly data: Database;
}

/** Changes of a server's data that are worth counting. */
export interface DataWatch {
  readonly expired: (value: string) => void;
  readonly set: (value: string, words: readonly (string | number)[]) => void;
  readonly added: (addition: Addition) => void;
  readonly fieldSet: (server: SimServer, field: string, before: string | undefined) => void;
  /** A request was refused by the gate, or has passed it. */
  readonly gated: (server: SimServer, hasPassed: boolean) => void;
  /** A message was published, and at least one subscriber received it. */
  readonly published: (channel: string, message: string) => void;
  /** A write of a state was refused, because the data is not the one that was opened. */
  readonly excluded: () => void;
  /** A state was not opened or written, because another holder has claimed it. */
  readonly claimed: () => void;
  readonly failed: (message: string) => void;
}

export interface ServerPlan {
  readonly clock: MachineClock;
  readonly faults: ReadonlySet<ModelFault>;
  readonly remains?: Remains | undefined;
  /** Milliseconds for which it claims to have run. */
  readonly uptime?: number;
  readonly watch?: DataWatch | undefined;
}

/** One run of a server, from its start until it ends. The machine and its clock outlive it. */
export class SimServer implements Executor {
  data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly scripts = new Set<string>();
  lives = LIVES;
  /** When its gate was first asked since it started, or since it lost its marker; in true time. */
  askedAt: number | undefined;
  readonly clock: MachineClock;
  private readonly watch: DataWatch | undefined;
  private readonly subscribers = new Map<string, Set<Peer>>();
  private readonly started: number;
  private words: readonly (string | number)[] = [];

  constructor(
    readonly run: string,
    { clock, faults, remains, uptime = 0, watch }: ServerPlan,
  ) {
    this.clock = clock;
    this.faults = faults;
    this.watch = watch;
    this.data = this.databaseWith(remains);
    this.started = this.wall - uptime;
  }

  readonly time = (): number => Math.floor(this.clock.wallTime * 1_000);

  readonly publish = (channel: string, message: string): number => {
    const peers = this.subscribers.get(channel);
    for (const peer of peers ?? []) peer.push(channel, message);
    if (peers !== undefined && peers.size > 0) this.watch?.published(channel, message);
    return peers?.size ?? 0;
  };

  /** The fields of INFO that the library reads. */
  readonly info = (): ServerInfo => ({
    run_id: this.run,
    redis_version: '7.0.15',
    redis_mode: 'standalone',
    uptime_in_seconds: this.uptime,
    role: this.data.isReadOnly ? 'slave' : 'master',
    maxmemory: this.data.isFull ? 1 : 0,
    maxmemory_policy: 'noeviction',
  });

  /** Returns a value, or the error that the server answers with. */
  answer(command: string, args: readonly (string | number)[]): unknown {
    this.words = args;
    try {
      const answer = execute(this, command, args);
      // If one of several requests fails, its error is among the answers.
      if (this.watch && Array.isArray(answer)) {
        for (const part of answer) if (part instanceof ReplyError) this.watch.failed(part.message);
        if (answer[0] === OTHER_MARKER && args.includes('write-state')) this.watch.excluded();
        if (answer[0] === CLAIMED && answer.length > 1) this.watch.claimed();
      }
      return answer;
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      this.watch?.failed(error.message);
      return error;
    }
  }

  subscribe(channel: string, peer: Peer): void {
    const peers = this.subscribers.get(channel) ?? new Set();
    this.subscribers.set(channel, peers.add(peer));
  }

  forget(peer: Peer): void {
    for (const peers of this.subscribers.values()) peers.delete(peer);
  }

  readonly noteGate = (hasPassed: boolean): void => this.watch?.gated(this, hasPassed);

  /** Becomes a replica that accepts no writes. */
  demote(): void {
    this.data.isReadOnly = true;
  }

  promote(): void {
    this.data.isReadOnly = false;
  }

  /** Writes the marker of this run: processes that are gone have used it. */
  mark(name: string): void {
    const { watch } = this.data;
    this.data.watch = undefined;
    this.data.hset(name, 'run', this.run);
    this.data.hset(name, 'from', String(this.wall - LONG_AGO));
    this.data.watch = watch;
    this.askedAt = -Infinity;
  }

  private databaseWith(remains: Remains | undefined): Database {
    const { watch } = this;
    const data = new Database(() => this.wall, remains);
    if (!watch) return data;
    data.watch = {
      expired: watch.expired,
      set: (value) => watch.set(value, this.words),
      added: (key, member) => watch.added({ key, member, words: this.words, data }),
      fieldSet: (field, before) => watch.fieldSet(this, field, before),
    };
    return data;
  }

  private get wall(): number {
    return Math.floor(this.clock.wallTime);
  }

  private get uptime(): number {
    return Math.floor(this.wall / 1_000) - Math.floor(this.started / 1_000);
  }
}

/** A run id that is the same for the same server in every schedule. */
export function runId(server: number, incarnation: number): string {
  return `${server}`.padStart(8, 'a') + `${incarnation}`.padStart(32, '0');
}
