import type { LockObserver } from '../../../lib/core/observer.js';
import type { RedlockOptions } from '../../../lib/core/settings/options.js';
import { resolveSettings, type Settings } from '../../../lib/core/settings/settings.js';
import type { Announcement, ServerRecord, GuardedServer } from '../../../lib/redis/guard/server-record.js';
import type { RestartGuardContext } from '../../../lib/redis/guard/guard-group.js';
import type { ServerIdentity } from '../../../lib/redis/replies.js';
import {
  announcementOf,
  markArguments,
  type Marker,
  type MarkerChange,
  MARKER_FIELDS,
  markerFrom,
} from '../../../lib/redis/guard/marker.js';
import { RestartGuard } from '../../../lib/redis/guard/restart-guard.js';
import type { TestClock } from './test-clock.js';

let nonces = 0;

/** What a {@link Link} needs of the process to which it belongs. */
interface Peer {
  readonly name: string;
  readonly guard: Pick<RestartGuard, 'sampled'>;
}

/** The context of the guard of a process that observes nothing. */
export function contextOf(clock: TestClock, name: string, settings: Settings): RestartGuardContext {
  const random = { token: () => `${name}-${++nonces}`, fraction: () => 0.5 };
  return { clock, settings, random, observer: {}, instance: name, clockLags: () => undefined };
}

/** A server with only its identity, its marker and its clock. Several processes may use it. */
export class FakeServer {
  run: string;
  replid: string;
  wasPromoted = false;
  replicas = 0;
  hasAppendOnlyFile = false;
  isDown = false;
  /** Milliseconds by which its clock is ahead of the others. */
  ahead = 0;
  /** The announcements that it received: when, and from which process. */
  readonly beats: (Announcement & { readonly at: number; readonly by: string })[] = [];
  /** The changes of its marker, in order. */
  readonly changes: MarkerChange[] = [];
  fields: Partial<Record<string, string>> = {};

  constructor(
    readonly clock: TestClock,
    readonly name: string,
  ) {
    this.run = `${name}:run`;
    this.replid = `${name}:history`;
  }

  get time(): number {
    return this.clock.read().wall + this.ahead;
  }

  get marker(): Marker | undefined {
    return markerFrom(
      MARKER_FIELDS.map((field) => this.fields[field] ?? ''),
      this.time,
    );
  }

  /** Restarts without its data. */
  restart(): this {
    this.run += "'";
    this.replid += "'";
    this.fields = {};
    return this;
  }

  report(): ServerIdentity {
    const { run, replid, wasPromoted, replicas, hasAppendOnlyFile, time, marker } = this;
    return {
      ...{ run, replid, wasPromoted, replicas, hasAppendOnlyFile, time, marker },
      ...{ version: '8.0.0', role: 'master', mode: 'standalone', eviction: undefined, uptime: 0 },
    };
  }

  change(change: MarkerChange): void {
    this.changes.push(change);
    for (const [field, value] of Object.entries(change)) this.fields[field] = String(value);
  }

  /** Gives it a marker that has voted for a long time, as a process left it. */
  mark(change: MarkerChange = {}): this {
    const { run, replid } = this;
    this.change({
      run,
      replid,
      nonce: `old-${++nonces}`,
      from: this.time - 60_000,
      vetoed: 0,
      known: 10_000,
      ...change,
    });
    return this;
  }

  /** Gives it a marker that keeps it from voting for some milliseconds, as a process has just written it. */
  quarantine(wait: number, change: MarkerChange = {}): this {
    return this.mark({ from: this.time + wait, at: this.time, ...change });
  }

  announce(ttl: number): void {
    this.change({ ttls: announcementOf(ttl, this.time + ttl * 1.01 + 4_000) });
  }
}

/** Three new servers. */
export function threeServers(clock: TestClock): [FakeServer, FakeServer, FakeServer] {
  return [new FakeServer(clock, 'a'), new FakeServer(clock, 'b'), new FakeServer(clock, 'c')];
}

/** The connection of one process to one server. */
export class Link implements GuardedServer {
  isDurable = false;
  readonly handover = 0;
  votedAt: number | undefined;
  /** Delays reports until it resolves. */
  held: Promise<void> | undefined;
  identity: ServerRecord | undefined;
  /** Whether nothing that is sent over the connection is answered. */
  isMute = false;
  private readonly unanswered: (() => void)[] = [];
  /** How often the connection was replaced because nothing arrived. */
  reconnects = 0;
  /** Number of reports that were requested. */
  readings = 0;

  constructor(
    private readonly server: FakeServer,
    private readonly process: Peer,
  ) {}

  get name(): string {
    return this.server.name;
  }

  get isConnected(): boolean {
    return !this.server.isDown;
  }

  async report(): Promise<ServerIdentity | undefined> {
    this.readings++;
    if (this.server.isDown) return undefined;
    const report = this.server.report();
    await this.held;
    return report;
  }

  mark(report: ServerIdentity, change: MarkerChange): Promise<boolean> {
    const { server } = this;
    const [run, replid, readAt, , expected] = markArguments(report, change);
    const [, , , , current] = markArguments({ ...report, marker: server.marker }, change);
    const isSame = server.run === run && server.replid === replid && server.time - Number(readAt) <= 2_000;
    const mayChange = !server.isDown && isSame && expected === current;
    if (mayChange) server.change(change);
    return Promise.resolve(mayChange);
  }

  beat(announcement: Announcement): Promise<number | undefined> {
    const { server, process } = this;
    if (this.isMute) return new Promise((resolve) => this.unanswered.push(() => resolve(undefined)));
    server.beats.push({ ...announcement, at: server.clock.now, by: process.name });
    const { marker } = server;
    if (server.isDown || !marker) return Promise.resolve(undefined);
    const known = Math.max(announcement.known, marker.knownTtl);
    server.change({ known });
    if (announcement.ttl > marker.maxTtl) server.announce(announcement.ttl);
    if (this.identity) this.identity.contactedAt = server.clock.now;
    if (this.identity) process.guard.sampled(this.identity, server.clock.read(), server.time);
    return Promise.resolve(known);
  }

  /** Delays reports until the returned function is called. */
  hold(): () => void {
    let letGo: () => void = () => undefined;
    this.held = new Promise((resolve) => (letGo = resolve));
    return () => {
      letGo();
      this.held = undefined;
    };
  }

  reconnect(): void {
    this.reconnects++;
    for (const fail of this.unanswered.splice(0)) fail();
  }

  onVoting(): void {
    this.votedAt = this.server.clock.now;
  }
}

/** One process with its guard. */
export class Process {
  readonly settings: Settings;
  readonly guard: RestartGuard;
  readonly links: readonly Link[];
  readonly cuts: (readonly [wanted: number, used: number, missing: readonly string[]])[] = [];
  readonly lags: number[] = [];
  /** What operators learn of the masters. */
  readonly events: string[] = [];

  constructor(
    readonly clock: TestClock,
    servers: readonly FakeServer[],
    { name = 'process', ...options }: RedlockOptions & { readonly name?: string } = {},
  ) {
    this.name = name;
    this.settings = resolveSettings(options, servers.length);
    const observer: LockObserver = {
      ttlCut: (...cut) => this.cuts.push(cut),
      masterRefused: (master) => this.events.push(`${master} refuses`),
      masterVotesAgain: (master) => this.events.push(`${master} votes again`),
    };
    this.guard = new RestartGuard({
      ...contextOf(clock, name, this.settings),
      observer,
      clockLags: (milliseconds) => this.lags.push(milliseconds),
    });
    this.links = servers.map((server) => new Link(server, this));
    for (const link of this.links) link.identity = this.guard.add(link);
    this.servers = servers;
  }

  readonly name: string;
  private readonly servers: readonly FakeServer[];

  /** Reads the identity of a server, as a new connection does. */
  connect(server: FakeServer): void {
    const { identity } = this.links[this.servers.indexOf(server)]!;
    if (!server.isDown) this.guard.meet(identity!, server.report(), this.clock.read());
  }

  async connectAll(): Promise<this> {
    for (const server of this.servers) this.connect(server);
    await this.clock.settle();
    return this;
  }

  get votes(): boolean[] {
    return this.links.map(({ identity }) => identity!.votes);
  }
}
