import { elapsedBetween, type Instant } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import type { ServerIdentity } from '../identity.js';
import { ANNOUNCED_FOR } from '../scripts/operations.lua.js';
import type { Marker, MarkerChange } from './marker.js';
import { ServerClock } from './server-clock.js';

/** The history of a server is compared at least this often, in milliseconds. */
export const COMPARISON_INTERVAL = 1_000;

/** So many milliseconds after an announcement, a server still keeps the ttl for as long as a new lock lives. */
const KNOWN_FOR = ANNOUNCED_FOR - 500;

/** Share by which a clock that is being corrected may run too fast. */
const SLEWED = 0.002;
/** Times of servers are in whole milliseconds. */
const ROUNDED = 2;

/** An address may lead to so many other servers for a while without a loss of what is known about a clock. */
const MOST_CLOCKS = 4;

/** One server, as the guard uses it. */
export interface GuardedServer {
  readonly name: string;
  /** Declares that the server keeps every acknowledged write across restarts and failovers. */
  readonly isDurable: boolean;
  /** Whether there is a connection over which the server can be asked. */
  readonly isConnected: boolean;
  /** Asks the server for its identity; `undefined` if it does not answer. */
  report(): Promise<ServerIdentity | undefined>;
  /**
   * Changes the marker, unless the marker or the server is no longer the one in the report.
   *
   * @returns whether the marker was changed; `undefined` if the server refused
   */
  mark(report: ServerIdentity, change: MarkerChange): Promise<boolean | undefined>;
  /**
   * Sends a small request that is checked like a vote, returns the server's time, and announces a ttl.
   *
   * @returns the largest ttl that was announced to every master; `undefined` if the server did not accept the request
   */
  beat(announcement: Announcement): Promise<number | undefined>;
  /** Whether `appendfsync` is `always` now; `false` if the server does not report it. */
  syncsAlways(): Promise<boolean>;
  /** Called when the votes of the server begin to count. */
  onVoting(): void;
  /** Replaces a connection on which nothing arrives. */
  reconnect(): void;
}

export interface Announcement {
  /** The largest ttl in use, in milliseconds; `0` announces nothing. */
  readonly ttl: number;
  /** Whether to lengthen a running quarantine, because a lock from before it may have this ttl. */
  readonly lengthens: boolean;
  /** A ttl that was announced to every master, in milliseconds. */
  readonly known: number;
}

/** When a report was requested, and when it arrived. */
interface Reading {
  readonly asked: Instant;
  readonly received: Instant;
}

/** How the data of a server relates to what its marker says. */
export type Relation =
  /** The marker belongs to this run and this history. */
  | 'known'
  /** The same data under another identity: the first replica was attached, or a durable server was restarted. */
  | 'renamed'
  /** The data may lack acknowledged writes. */
  | 'unknown';

/** What this client knows about the data of one server, and whether the server may vote. */
export class DataIdentity {
  clock: ServerClock;
  /** Changes whenever the answers to earlier requests must not count any more. */
  epoch = 0;
  votes = false;
  /** Changes with every new piece of information: a report that was read before is then out of date. */
  revision = 0;
  /** The marker that was accepted last. */
  marker: Marker | undefined;
  /** When this client first saw the nonce of the marker. */
  seenSince: Instant | undefined;
  /** When this client first saw that the data is unknown; `undefined` while it is known. */
  unknownSince: Instant | undefined;
  /** Why it does not vote, in words. */
  reason = 'its data is being looked at';
  /** History of the data, as this client saw it last. */
  replid = '';
  /** Whether a step of its clock is being judged: its grants do not count meanwhile. */
  isSuspect = false;
  /** Whether it voted before the current check of its identity, which it has not answered yet. */
  isChecked = false;
  /** Whether this process held a lock when it first saw the marker in place of another one. */
  wasMetEngaged = false;
  /** Whether the wait of the marker may have to be lengthened for a lock of this process. */
  owesLengthening = false;
  /** Whether a reading is under way. */
  isReading = false;
  /** When that reading began, or the connection was last replaced because it takes too long. Monotonic. */
  readingSince = 0;
  /** Whether a heartbeat is under way. */
  isBeating = false;
  /** When that heartbeat was sent, or the connection was last replaced because it takes too long. Monotonic. */
  beatingSince = 0;
  /** How far its clock moved forward, kept until all clients can learn of it. */
  step: number | undefined;
  /** The largest ttl that was announced to every master, according to this one. In milliseconds. */
  knownTtl = 0;
  /** Whether the observer was notified that it does not vote. */
  isAnnounced = false;
  /** The clocks of the data that was here before, by nonce: the address may lead back to it. */
  private readonly clocks = new Map<string, ServerClock>();
  /** The run of the server whose data is unknown. */
  private unknownRun: string | undefined;
  private compared = -Infinity;
  /** The ttl that the server last confirmed, and when the announcement was sent. */
  private announced: { readonly ttl: number; readonly sent: Instant } | undefined;
  /** The end of a quarantine, and how far away it was at a reading. */
  private watched: { readonly from: number; readonly left: number; readonly since: Instant } | undefined;
  private until: { readonly since: number; readonly length: number } | undefined;

  constructor(
    readonly server: GuardedServer,
    private readonly window: () => number,
  ) {
    this.clock = new ServerClock(window);
  }

  get nonce(): string {
    return this.marker?.nonce ?? '';
  }

  get isQuarantined(): boolean {
    return this.isSuspect || !(this.votes || this.isChecked);
  }

  /** Why it does not vote, and for how long at most; `undefined` when it votes. */
  quarantineAt(now: Instant): Quarantine | undefined {
    if (!this.isQuarantined) return undefined;
    const { since = now.monotonic, length = 0 } = this.until ?? {};
    return { reason: this.reason, remaining: Math.max(1, length - (now.monotonic - since)) };
  }

  /**
   * The history that a script has to compare with the server's own; empty while the last comparison is fresh.
   *
   * @param interval milliseconds for which a comparison is fresh
   */
  historyToCompare(now: Instant, interval: number): string {
    return now.monotonic - this.compared <= interval ? '' : this.replid;
  }

  /** A script that was sent at a moment has compared this history, and carried out its requests. */
  noteComparison(history: string, sent: Instant): void {
    if (history === this.replid) this.compared = Math.max(this.compared, sent.monotonic);
  }

  /** The server has confirmed the announcement of a ttl, in milliseconds. */
  noteAnnouncement(ttl: number, sent: Instant): void {
    if (ttl > 0) this.announced = { ttl, sent };
  }

  /**
   * Whether the server certainly knew of a ttl when it granted it. A grant that it gave without would not count in the
   * quarantine of another master.
   */
  knewOf(ttl: number, received: Instant): boolean {
    return (
      this.announced !== undefined &&
      ttl <= this.announced.ttl &&
      elapsedBetween(this.announced.sent, received) <= KNOWN_FOR
    );
  }

  relationOf(report: ServerIdentity, syncsAlways: boolean): Relation {
    return relationOf(report, { isDurable: this.server.isDurable, syncsAlways });
  }

  /** What happens without a connection is not known: a wait for what was lost before may not be enough. */
  noteDisconnect(): void {
    this.unknownSince = undefined;
  }

  /** Lets no grant of the server count until a step of its clock has been judged. */
  suspect(reason: string): void {
    this.revision++;
    this.isSuspect = true;
    this.epoch++;
    this.reason = reason;
  }

  /** Lets no grant of the server count until its identity has been checked. */
  mistrust(reason: string): void {
    this.revision++;
    if (this.votes) this.reason = reason;
    this.votes = false;
    this.epoch++;
    this.compared = -Infinity;
  }

  /** Like {@link mistrust}, for the time of a check, during which the server is not reported as quarantined. */
  check(): void {
    this.isChecked ||= this.votes;
    this.mistrust('it is asked who it is');
  }

  /** Records that the data may lack acknowledged writes. */
  doubt(report: ServerIdentity, received: Instant): void {
    this.revision++;
    if (this.unknownSince === undefined) this.reason = reasonFor(report, this.marker);
    if (this.unknownSince === undefined || this.unknownRun !== report.run) this.unknownSince = received;
    this.unknownRun = report.run;
    this.replid = report.replid;
    this.isChecked = false;
    if (this.votes) this.mistrust(this.reason);
  }

  /**
   * Accepts the marker of known data. The server votes when `from` has passed by its clock.
   *
   * @param longest the longest quarantine, in milliseconds
   */
  accept(report: ServerIdentity, { asked, received }: Reading, longest: number): void {
    const { marker } = report;
    if (!marker) return;
    this.revision++;
    const isNew = marker.nonce !== this.marker?.nonce;
    if (isNew) {
      // Not since the request: the marker may be younger than that, and its quarantine does not end earlier.
      this.seenSince = received;
      this.turnTo(marker.nonce);
      if (this.marker !== undefined || this.votes) this.epoch++;
      this.compared = -Infinity;
    }
    if (report.replid !== this.replid) this.compared = -Infinity;
    this.replid = report.replid;
    this.marker = marker;
    this.knownTtl = marker.knownTtl;
    this.unknownSince = undefined;
    const since = this.seenSince?.monotonic ?? received.monotonic;
    const isYoung = marker.from > report.time || this.endsTooEarly(marker, received);
    if (marker.from > report.time) this.watched = { from: marker.from, left: marker.from - report.time, since: asked };
    // A nonce that has voted keeps its vote: its quarantine has ended, even if the clock is set back afterwards.
    this.isChecked = false;
    if (!isNew && this.votes) return;
    this.votes = !isYoung; // @mutant a-new-marker-votes-at-once
    if (!isYoung) return;
    this.reason = marker.reason;
    const { since: seen = asked, left = 0 } = this.watched ?? {};
    const watchedLeft = Math.max(marker.from - report.time, left - elapsedBetween(seen, asked));
    this.wait(asked, Math.min(watchedLeft, longest - Math.max(0, asked.monotonic - since)));
  }

  /** Whether the end has passed by the clock of the server only: the clock was set forward while this process watched. */
  private endsTooEarly({ from }: Marker, now: Instant): boolean {
    const { watched } = this;
    if (watched?.from !== from) return false;
    return elapsedBetween(watched.since, now) < watched.left * (1 - SLEWED) - ROUNDED;
  }

  /**
   * A step leads to one accusation only: samples from before a marker say nothing about the time after it. They still
   * do if the address led to another server meanwhile, and now leads back.
   */
  private turnTo(nonce: string): void {
    this.announced = undefined;
    this.watched = undefined;
    this.clocks.set(this.nonce, this.clock);
    this.clock = this.clocks.get(nonce) ?? new ServerClock(this.window);
    this.clocks.delete(nonce);
    const [oldest] = this.clocks.keys();
    if (this.clocks.size > MOST_CLOCKS && oldest !== undefined) this.clocks.delete(oldest);
  }

  /** By the clock of this process, the quarantine is over: the server votes, for this process only. */
  endWait(): void {
    this.revision++;
    this.votes = true;
    this.server.onVoting();
  }

  /** Records that the server does not vote for at most `length` milliseconds. */
  wait(since: Instant, length: number): void {
    this.until = { since: since.monotonic, length };
  }

  /** Whether the marker in the report keeps the server from voting. */
  isYoungAt(report: ServerIdentity): boolean {
    return report.marker !== undefined && report.marker.from > report.time;
  }
}

/** How the data of a server relates to its marker, according to a report. */
export function relationOf(
  { marker, run, replid, wasPromoted, replicas }: ServerIdentity,
  { isDurable, syncsAlways }: { readonly isDurable: boolean; readonly syncsAlways: boolean },
): Relation {
  if (!marker) return 'unknown'; // @mutant lost-data-taken-for-known-data
  if (marker.run === run && marker.replid === replid) return 'known'; // @mutant another-run-taken-for-known-data
  // A process without the permission for INFO has only the nonce, and must not question what others know.
  if (run === '') return 'known';
  if (isDurable || marker.run === '') return 'renamed';
  // Attaching the first replica begins a new history of the same data. A promotion does, too, and its trace is lost with
  // the replication backlog: without a replica, there is no proof that the data is the same.
  if (marker.run === run) return wasPromoted || replicas === 0 ? 'unknown' : 'renamed';
  return marker.isDurable && syncsAlways && !wasPromoted ? 'renamed' : 'unknown';
}

/** Why the data of a server is unknown. */
export function reasonFor({ marker, run, wasPromoted }: ServerIdentity, before: Marker | undefined): string {
  if (!marker) return before ? 'it lost its data' : 'its data is new to all processes';
  if (wasPromoted) return 'it was promoted from a replica';
  return marker.run === run ? 'its data has another history' : 'it was restarted';
}
