import type { MarkerField } from '../../../lib/redis/guard/marker.js';
import type { MachineClock } from '../engine/machine-clock.js';
import { type Executor, execute, type ServerInfo } from './commands.js';
import { OUTBID, UNMARKED } from '../../../lib/redis/scripts/constants.js';
import { Database, protect, ReplyError } from './database.js';
import { announce, LIVES, type ModelFault } from './operations.js';

const LOADING = 'LOADING Redis is loading the dataset in memory';
const NO_REPLID = '0'.repeat(40);
/** Before the beginning of a schedule, in milliseconds. */
const LONG_AGO = 60_000;

/** The data that is left on disk, on a replica or in a snapshot when a server is replaced. */
export type Remains = ReturnType<Database['copy']>;

/** The server's side of one connection. */
export interface Peer {
  /** Sends a message of a channel. */
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
  /** A key has expired. */
  readonly expired: (value: string) => void;
  /** A command with these words set a string. */
  readonly set: (value: string, words: readonly (string | number)[]) => void;
  /** A sorted set has a new member. */
  readonly added: (addition: Addition) => void;
  /** A command set a field of a hash. */
  readonly fieldSet: (
    field: string,
    before: string | undefined,
    after: string,
    words: readonly (string | number)[],
  ) => void;
  /** A message was published, and at least one subscriber received it. */
  readonly published: (channel: string, message: string) => void;
  /** A write of a state was refused, because the data is not the one that was opened. */
  readonly excluded: () => void;
  /** A state was not opened or written, because another holder has opened it with a larger ballot. */
  readonly outbid: () => void;
  /** A command failed. */
  readonly failed: (message: string) => void;
}

/** The properties of a server when it starts. */
export interface ServerPlan {
  readonly clock: MachineClock;
  readonly faults: ReadonlySet<ModelFault>;
  readonly remains?: Remains | undefined;
  /** Milliseconds for which it claims to have run. */
  readonly uptime?: number;
  /** The history that it replicated before its promotion, if any. */
  readonly promotedFrom?: string | undefined;
  /** Whether it writes everything to disk before it acknowledges it. */
  readonly durable?: boolean;
  readonly watch?: DataWatch | undefined;
}

/** One run of a server, from its start until it ends. The machine and its clock outlive it. */
export class SimServer implements Executor {
  data: Database;
  readonly faults: ReadonlySet<ModelFault>;
  readonly scripts = new Set<string>();
  /** Identifies its history of writes. A promotion changes it, and so does the first replica. */
  replid: string;
  /** The history that this one continues; zeros if there is none. */
  replid2 = NO_REPLID;
  lives = LIVES;
  /** Whether it is loading the data of its new primary, and answers nothing else. */
  isLoading = false;
  private readonly clock: MachineClock;
  private readonly watch: DataWatch | undefined;
  /** Whether it has an append-only file, and `appendfsync` is `always`. */
  syncsAlways: boolean;
  private readonly subscribers = new Map<string, Set<Peer>>();
  private readonly started: number;
  /** Whether it was a replica, and does not name the history of its primary any more. */
  hasForgotten = false;
  private histories = 0;
  private hasReplica = false;
  private words: readonly (string | number)[] = [];

  constructor(
    /** Identifies this run of a server. */
    public run: string,
    { clock, faults, remains, uptime = 0, promotedFrom, durable = false, watch }: ServerPlan,
  ) {
    this.clock = clock;
    this.faults = faults;
    this.syncsAlways = durable;
    this.watch = watch;
    this.data = this.databaseWith(remains);
    this.started = this.wall - uptime;
    this.replid = this.newReplid();
    if (promotedFrom !== undefined) this.replid2 = promotedFrom;
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
    connected_slaves: this.hasReplica ? 1 : 0,
    master_replid: this.replid,
    master_replid2: this.replid2,
    maxmemory: this.data.isFull ? 1 : 0,
    maxmemory_policy: 'noeviction',
    aof_enabled: this.syncsAlways ? 1 : 0,
  });

  /** Returns a value, or the error that the server answers with. */
  answer(command: string, args: readonly (string | number)[]): unknown {
    this.words = args;
    if (this.isLoading) {
      this.watch?.failed(LOADING);
      return new ReplyError(LOADING);
    }
    try {
      const answer = execute(this, command, args);
      // If one of several requests fails, its error is among the answers.
      if (this.watch && Array.isArray(answer)) {
        for (const part of answer) if (part instanceof ReplyError) this.watch.failed(part.message);
        if (answer[0] === UNMARKED && args.includes('write-state')) this.watch.excluded();
        if (answer[0] === OUTBID && answer.length > 1) this.watch.outbid();
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

  /** Becomes a replica that accepts no writes, as after an operator's command or a failover. */
  demote(): void {
    this.data.isReadOnly = true;
  }

  /** Becomes a replica of another history, and gets the data of its new primary. */
  follow(replid: string, remains: Remains): void {
    this.restore(remains);
    this.replid2 = NO_REPLID;
    this.replid = replid;
    // Its former replica is its primary now.
    this.hasReplica = false;
    this.demote();
  }

  /** @param forgets whether its backlog has ended, so that it does not name the history of its primary */
  promote(forgets = false): void {
    if (!this.data.isReadOnly) return;
    this.data.isReadOnly = false;
    this.replid2 = forgets ? NO_REPLID : this.replid;
    this.hasForgotten = forgets;
    this.replid = this.newReplid();
  }

  /** The first replica makes a server start a new history that does not name the previous one. */
  attachReplica(): void {
    if (this.hasReplica || this.data.isReadOnly) return;
    this.hasReplica = true;
    this.replid = this.newReplid();
    this.replid2 = NO_REPLID;
  }

  /** A process that knows this run of the server announces a ttl, in milliseconds. */
  announceFor(marker: string, ttl: number): void {
    if (this.isLoading || this.data.hget(marker, 'run') !== this.run) return;
    this.data.begin();
    protect(() => announce(this, marker, { ttl, lengthens: false, factor: 1.01, known: 0 }));
  }

  /** Replaces the data in the same process, as a snapshot of its memory does. */
  restore(remains: Remains): void {
    const { isFull, isReadOnly } = this.data;
    this.data = this.databaseWith(remains);
    this.data.isFull = isFull;
    this.data.isReadOnly = isReadOnly;
  }

  /** Writes the marker that processes which are gone have left: they used locks of this ttl, in milliseconds. */
  mark(name: string, ttl: number): void {
    const at = this.wall - LONG_AGO;
    const marker: Record<MarkerField, string | number> = {
      run: this.run,
      ...{ replid: this.replid, nonce: `known ${this.run}`, from: at, vetoed: 0, guess: 0, ttls: '' },
      ...{
        known: ttl,
        durable: this.syncsAlways ? 1 : 0,
        by: 'an earlier process',
        at,
        why: 'its data is new to all processes',
        generation: `known-${this.run}@${at}`,
        first: 1,
      },
    };
    for (const [field, value] of Object.entries(marker)) this.data.hset(name, field, String(value));
  }

  private databaseWith(remains: Remains | undefined): Database {
    const { watch } = this;
    const data = new Database(() => this.wall, remains);
    if (!watch) return data;
    data.watch = {
      expired: watch.expired,
      set: (value) => watch.set(value, this.words),
      added: (key, member) => watch.added({ key, member, words: this.words, data }),
      fieldSet: (field, before, after) => watch.fieldSet(field, before, after, this.words),
    };
    return data;
  }

  private get wall(): number {
    return Math.floor(this.clock.wallTime);
  }

  private get uptime(): number {
    return Math.floor(this.wall / 1_000) - Math.floor(this.started / 1_000);
  }

  /** The same in every schedule, for the same reason as {@link runId}. */
  private newReplid(): string {
    return `b${this.run.slice(1, 8)}${this.run.slice(16)}${String(this.histories++).padStart(8, '0')}`;
  }
}

/** A run id that is the same for the same server in every schedule, so that its scripts are parsed only once. */
export function runId(server: number, incarnation: number): string {
  return `${server}`.padStart(8, 'a') + `${incarnation}`.padStart(32, '0');
}
