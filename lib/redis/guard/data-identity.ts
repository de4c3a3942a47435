import type { Instant } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import type { ServerIdentity } from '../identity.js';
import { ConfirmedTtl } from './confirmed-ttl.js';
import type { GuardedServer } from './guarded-server.interface.js';
import type { Marker } from './marker.js';
import { PendingContact } from './pending-contact.js';
import { QuarantineWait } from './quarantine-wait.js';
import { reasonFor, type Relation, relationOf } from './relation.js';
import { ServerClock } from './server-clock.js';

/** The history of a server is compared at least this often, in milliseconds. */
export const COMPARISON_INTERVAL = 1_000;

/** An address may lead to so many other servers for a while without a loss of what is known about a clock. */
const MOST_CLOCKS = 4;

/** Differs from the nonce of every marker. */
const NO_NONCE = '-';

/** When a report was requested, and when it arrived. */
interface ReportTimes {
  readonly asked: Instant;
  readonly received: Instant;
}

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
  /** Whether other data was here before, as this process knows: then what the data lacks may have been written. */
  hasLostData = false;
  /** Whether this process held a lock when it first saw the marker in place of another one. */
  wasMetEngaged = false;
  /** Whether the wait of the marker may have to be lengthened for a lock of this process. */
  owesLengthening = false;
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
  /** Whether the data that was seen last is unknown, over whichever connection: a restart does not make it known. */
  private isUnknown = false;
  /** The generation that this process knew here first. */
  private firstGeneration: string | undefined;
  private compared = -Infinity;
  private readonly wait = new QuarantineWait();
  readonly confirmedTtl = new ConfirmedTtl();
  readonly reading: PendingContact;
  readonly heartbeat: PendingContact;

  constructor(
    readonly server: GuardedServer,
    private readonly window: () => number,
  ) {
    this.clock = new ServerClock(window);
    this.reading = new PendingContact(server);
    this.heartbeat = new PendingContact(server);
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
    return { reason: this.reason, remaining: this.wait.remainingAt(now) };
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

  relationOf(report: ServerIdentity): Relation {
    const nonce = this.isUnknown ? NO_NONCE : this.nonce;
    return relationOf(report, { isDurable: this.server.isDurable, nonce });
  }

  /** Notes the data that is here, unless the address leads to another master for a while. */
  noteGeneration(generation: string): void {
    this.firstGeneration ??= generation;
    this.hasLostData ||= generation !== this.firstGeneration;
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
    this.mistrust('its identity is being checked');
  }

  /** Like {@link mistrust}, for a server that must never vote. */
  refuse(fault: string): void {
    this.mistrust(fault);
    this.isChecked = false;
  }

  /** Ends the time of a check: the identity is known again. */
  endCheck(): void {
    this.isChecked = false;
  }

  /** Records that the data may lack acknowledged writes. */
  doubt(report: ServerIdentity, received: Instant): void {
    this.revision++;
    if (this.unknownSince === undefined) this.reason = reasonFor(report, this.marker);
    if (this.unknownSince === undefined || this.unknownRun !== report.run) this.unknownSince = received;
    this.unknownRun = report.run;
    this.replid = report.replid;
    this.isChecked = false;
    this.isUnknown = true;
    if (this.votes) this.mistrust(this.reason);
  }

  /**
   * Accepts the marker of known data. The server votes when `from` has passed by its clock.
   *
   * @param longest the longest quarantine, in milliseconds
   */
  accept(report: ServerIdentity, { asked, received }: ReportTimes, longest: number): void {
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
    this.isUnknown = false;
    const since = this.seenSince?.monotonic ?? received.monotonic;
    // Protocol 8.2
    const isYoung = marker.from > report.time || this.wait.endsTooEarly(marker.from, received);
    if (marker.from > report.time) this.wait.watch(marker.from, marker.from - report.time, asked);
    // A nonce that has voted keeps its vote: its quarantine has ended, even if the clock is set back afterwards.
    this.isChecked = false;
    if (!isNew && this.votes) return;
    this.votes = !isYoung; // @mutant a-new-marker-votes-at-once
    if (!isYoung) return;
    this.reason = marker.reason;
    const left = Math.max(marker.from - report.time, this.wait.leftAt(asked));
    this.wait.limit(asked, Math.min(left, longest - Math.max(0, asked.monotonic - since)));
  }

  /**
   * A step leads to one accusation only: samples from before a marker say nothing about the time after it. They still
   * do if the address led to another server meanwhile, and now leads back.
   */
  private turnTo(nonce: string): void {
    this.confirmedTtl.forget();
    this.wait.forget();
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
  waitAtMost(since: Instant, length: number): void {
    this.wait.limit(since, length);
  }

  /** Whether the marker in the report keeps the server from voting. */
  isYoungAt(report: ServerIdentity): boolean {
    // Protocol 8.4
    return report.marker !== undefined && report.marker.from > report.time;
  }
}
