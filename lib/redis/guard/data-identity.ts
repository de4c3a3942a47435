import type { Instant } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import type { ServerReport } from '../identity.js';
import type { Marker, MarkerField } from './marker.js';
import { ServerClock } from './server-clock.js';

/** The history of a server is compared at least this often, in milliseconds. */
export const COMPARISON_INTERVAL = 1_000;

/** The fields of a marker that change. */
export type MarkerChange = Partial<Record<MarkerField, string | number>>;

/** What the guard does on one server. */
export interface GuardedServer {
  readonly name: string;
  /** Declares that the server keeps every acknowledged write across restarts and failovers. */
  readonly isDurable: boolean;
  /** Whether there is a connection on which the server can be asked. */
  readonly isConnected: boolean;
  /** Asks the server who it is; `undefined` when it cannot say. */
  report(): Promise<ServerReport | undefined>;
  /**
   * Changes the marker unless it, or the server, is another than in the report.
   *
   * @returns whether it did; `undefined` if the server refused
   */
  mark(report: ServerReport, change: MarkerChange): Promise<boolean | undefined>;
  /**
   * A small request that is checked like a vote, answers the server's time, and announces a ttl.
   *
   * @returns the largest ttl that every master has been told of; `undefined` if the server did not take it
   */
  beat(announcement: Announcement): Promise<number | undefined>;
  /** Whether `appendfsync` is `always` now; false when the server does not say. */
  syncsAlways(): Promise<boolean>;
  /** The votes of the server count from now on. */
  onVoting(): void;
}

export interface Announcement {
  /** The largest ttl in use, in milliseconds; `0` announces nothing. */
  readonly ttl: number;
  /** Whether a quarantine that is running becomes longer, since a lock from before it may have this ttl. */
  readonly lengthens: boolean;
  /** A ttl that every master has been told of, in milliseconds. */
  readonly known: number;
}

/** How the data of a server relates to what its marker says. */
export type Relation =
  /** The marker belongs to this run and this history. */
  | 'known'
  /** The same data under another identity: the first replica was attached, or a durable server was restarted. */
  | 'renamed'
  /** It may lack what was acknowledged. */
  | 'unknown';

/** What this client knows of the data of one server, and whether it may vote. */
export class DataIdentity {
  readonly clock: ServerClock;
  /** Changes whenever what was asked before cannot count any more. */
  epoch = 0;
  votes = false;
  /** Changes whenever something is learned: what was read before is out of date then. */
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
  /** Whether a step of its clock is being judged: what it grants meanwhile does not count. */
  isSuspect = false;
  /** Whether it voted when it was asked anew who it is, and has not answered yet. */
  isChecked = false;
  /** Whether this process held a lock when it first saw the marker in place of another one. */
  wasMetEngaged = false;
  /** Whether the wait of the marker may have to become longer for a lock of this process. */
  owesLengthening = false;
  /** Whether a heartbeat is under way. */
  isBeating = false;
  /** By how much its clock moved forward, until all clients can learn of it. */
  step: number | undefined;
  /** The largest ttl that every master has been told of, as this one says. In milliseconds. */
  knownTtl = 0;
  /** Whether an observer was told that it does not vote. */
  isAnnounced = false;
  private compared = -Infinity;
  private until: { readonly since: number; readonly length: number } | undefined;

  constructor(
    readonly server: GuardedServer,
    window: () => number,
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
    if (now.monotonic - this.compared <= interval) return '';
    this.compared = now.monotonic;
    return this.replid;
  }

  relationOf(report: ServerReport, syncsAlways: boolean): Relation {
    return relationOf(report, { isDurable: this.server.isDurable, syncsAlways });
  }

  /** Nothing that the server grants counts until a step of its clock has been judged. */
  suspect(reason: string): void {
    this.revision++;
    this.isSuspect = true;
    this.epoch++;
    this.reason = reason;
  }

  /** Nothing that the server grants counts until it has been asked who it is. */
  mistrust(reason: string): void {
    this.revision++;
    if (this.votes) this.reason = reason;
    this.votes = false;
    this.epoch++;
    this.compared = -Infinity;
  }

  /** Like {@link mistrust}, while the server is being asked: what waits for the answer need not know. */
  check(): void {
    this.isChecked ||= this.votes;
    this.mistrust('it is asked who it is');
  }

  /** Its data may lack what was acknowledged. */
  doubt(report: ServerReport, asked: Instant): void {
    this.revision++;
    if (this.unknownSince === undefined) this.reason = reasonFor(report, this.marker);
    this.unknownSince ??= asked;
    this.replid = report.replid;
    this.isChecked = false;
    if (this.votes) this.mistrust(this.reason);
  }

  /**
   * Accepts the marker of known data. It votes when `from` has passed by the server's clock.
   *
   * @param longest the longest quarantine, in milliseconds
   */
  accept(report: ServerReport, asked: Instant, longest: number): void {
    const { marker } = report;
    if (!marker) return;
    this.revision++;
    const isNew = marker.nonce !== this.marker?.nonce;
    if (isNew) {
      this.seenSince = asked;
      // One accusation per step: samples from before the marker say nothing about the time after it.
      this.clock.forget();
      if (this.marker !== undefined || this.votes) this.epoch++;
      this.compared = -Infinity;
    }
    if (report.replid !== this.replid) this.compared = -Infinity;
    this.replid = report.replid;
    this.marker = marker;
    this.knownTtl = marker.knownTtl;
    this.unknownSince = undefined;
    const since = this.seenSince?.monotonic ?? asked.monotonic;
    const isYoung = marker.from > report.time;
    // A nonce that has voted stays in: its quarantine ended once, whatever a clock that was set back says.
    this.isChecked = false;
    if (!isNew && this.votes) return;
    this.votes = !isYoung;
    if (!isYoung) return;
    this.reason = marker.reason;
    const left = Math.min(marker.from - report.time, longest - (asked.monotonic - since));
    this.wait(asked, left);
  }

  /** It does not vote for so many milliseconds at most. */
  wait(since: Instant, length: number): void {
    this.until = { since: since.monotonic, length };
  }

  /** Whether the marker keeps the server out, for all that this client has read. */
  isYoungAt(report: ServerReport): boolean {
    return report.marker !== undefined && report.marker.from > report.time;
  }
}

/** How the data of a server relates to its marker, by what the server says now. */
export function relationOf(
  { marker, run, replid, wasPromoted }: ServerReport,
  { isDurable, syncsAlways }: { readonly isDurable: boolean; readonly syncsAlways: boolean },
): Relation {
  if (!marker) return 'unknown';
  if (marker.run === run && marker.replid === replid) return 'known';
  // A process that may not ask for INFO has only the nonce to go by, and must not call in question what others know.
  if (run === '') return 'known';
  if (isDurable || marker.run === '') return 'renamed';
  // Attaching the first replica begins a new history of the same data. A promotion leaves the old one's name behind.
  if (marker.run === run) return wasPromoted ? 'unknown' : 'renamed';
  return marker.isDurable && syncsAlways && !wasPromoted ? 'renamed' : 'unknown';
}

/** Why the data of a server is unknown. */
export function reasonFor({ marker, run, wasPromoted }: ServerReport, before: Marker | undefined): string {
  if (!marker) return before ? 'it lost its data' : 'its data is new to all processes';
  if (wasPromoted) return 'it was promoted from a replica';
  return marker.run === run ? 'its data has another history' : 'it was restarted';
}
