import type { MachineClock } from '../engine/machine-clock.js';
import { type Executor, execute } from './commands.js';
import { Database, ReplyError } from './database.js';
import { LIVES, type ModelFault } from './operations.js';

// Parts of INFO that are always the same.
const UNLIMITED = 'maxmemory:0\r\nmaxmemory_policy:noeviction\r\n';
const LIMITED = 'maxmemory:1\r\nmaxmemory_policy:noeviction\r\n';

/** What is left on disk, or on the replica, when a server is replaced. */
export type Remains = ReturnType<Database['copy']>;

/** The server's side of one connection. */
export interface Peer {
  /** Sends a message of a channel. */
  readonly push: (channel: string, message: string) => void;
}

/** One run of a server: from its start until it ends. The machine and its clock outlive it. */
export class SimServer implements Executor {
  readonly data: Database;
  readonly scripts = new Set<string>();
  lives = LIVES;
  readonly syncsAlways = false;
  private readonly subscribers = new Map<string, Set<Peer>>();
  private readonly started: number;
  private promoted = false;
  replid: string;
  /** What INFO said last about the server itself. */
  private told = { uptime: -1, text: '' };

  constructor(
    /** Tells this run of a server from all others. */
    readonly run: string,
    private readonly clock: MachineClock,
    readonly faults: ReadonlySet<ModelFault>,
    remains?: Remains,
    uptime = 0,
  ) {
    this.data = new Database(() => this.wall, remains);
    this.started = this.wall - uptime;
    this.replid = `history${run}`;
  }

  /** Marks this server as one that was a replica before. */
  static promoted(run: string, clock: MachineClock, faults: ReadonlySet<ModelFault>, remains: Remains): SimServer {
    const server = new SimServer(run, clock, faults, remains, 100_000);
    server.promoted = true;
    return server;
  }

  readonly time = (): number => Math.floor(this.clock.wallTime * 1_000);

  readonly publish = (channel: string, message: string): number => {
    const peers = this.subscribers.get(channel);
    for (const peer of peers ?? []) peer.push(channel, message);
    return peers?.size ?? 0;
  };

  readonly info = (): readonly [string, string, string, string] => {
    const { uptime } = this;
    if (uptime !== this.told.uptime) this.told = { uptime, text: this.serverInfo(uptime) };
    const role = this.data.isReadOnly ? 'slave' : 'master';
    const replid2 = this.promoted ? this.run : '0'.repeat(40);
    const replication = `role:${role}\r\nmaster_replid:${this.replid}\r\nmaster_replid2:${replid2}\r\n`;
    return [this.told.text, replication, this.data.isFull ? LIMITED : UNLIMITED, 'aof_enabled:0\r\n'];
  };

  /** A value, or the error that the server answers with. */
  answer(command: string, args: readonly (string | number)[]): unknown {
    try {
      return execute(this, command, args);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      throw error;
    }
  }

  subscribe(channel: string, peer: Peer): void {
    const peers = this.subscribers.get(channel) ?? new Set();
    this.subscribers.set(channel, peers.add(peer));
  }

  forget(peer: Peer): void {
    for (const peers of this.subscribers.values()) peers.delete(peer);
  }

  /** Becomes a replica that takes no writes, as an operator or a failover does it, and keeps its data. */
  demote(): void {
    this.data.isReadOnly = true;
  }

  promote(): void {
    if (!this.data.isReadOnly) return;
    this.data.isReadOnly = false;
    this.promoted = true;
    this.replid = `${this.replid}1`;
  }

  private get wall(): number {
    return Math.floor(this.clock.wallTime);
  }

  private serverInfo(uptime: number): string {
    return `run_id:${this.run}\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nuptime_in_seconds:${uptime}\r\n`;
  }

  private get uptime(): number {
    return Math.floor(this.wall / 1_000) - Math.floor(this.started / 1_000);
  }
}

/** A run id that is the same for the same server in every schedule, so that its scripts are worked out once. */
export function runId(server: number, incarnation: number): string {
  return `${server}`.padStart(8, 'a') + `${incarnation}`.padStart(32, '0');
}
