import { elapsedBetween, type Instant } from '../../core/clock.js';
import { type Quarantine, UNREAD_DATA } from '../../core/master.interface.js';
import type { ServerIdentity } from '../replies.js';
import { ANNOUNCED_FOR } from '../scripts/constants.js';
import { DataRecord, reasonFor, type Relation, relationOf } from '../data-record.js';
import type { Marker, MarkerChange } from './marker.js';
import { type Movement, QuarantineWait, ServerClock } from './server-clock.js';

// An address may lead to so many other servers for a while without a loss of what is known about a clock.
const MAX_CLOCKS = 4;

// Bounds for `ServerRecord.noteUnknown`, in milliseconds: shorter than a wait of new masters, and longer than two readings.
const UNSEEN = { min: 500, max: 2_500 } as const;

// Differs from the nonce of every marker.
const NO_NONCE = '-';

// Milliseconds after an announcement in which a server still keeps the ttl for as long as a new lock lives.
const KNOWN_FOR = ANNOUNCED_FOR - 500;

export interface GuardedServer {
  readonly name: string;
  // The operator declares that the server keeps each acknowledged write across restarts.
  readonly isDurable: boolean;
  // How much longer than its locks a quarantine has to last, in milliseconds; 0 for a single server.
  readonly handover: number;
  readonly isConnected: boolean;
  // Why it refused the last change of its marker.
  readonly markRefusal?: string | undefined;
  report(): Promise<ServerIdentity | undefined>;
  // Changes nothing if the marker or the server is no longer the one in the report. Resolves with whether the marker
  // was changed; with `undefined` if the server refused.
  mark(report: ServerIdentity, change: MarkerChange): Promise<boolean | undefined>;
  // A small request that is checked like a vote. Resolves with the largest ttl that was announced to every master; with
  // `undefined` if the server did not accept the request.
  beat(announcement: Announcement): Promise<number | undefined>;
  onVoting(): void;
  reconnect(): void;
}

export interface Announcement {
  // The largest ttl in use, in milliseconds; `0` announces nothing.
  readonly ttl: number;
  // Whether to lengthen a running quarantine, because a lock from before it may have this ttl.
  readonly lengthens: boolean;
  // A ttl that was announced to every master, in milliseconds.
  readonly known: number;
}

type DataState =
  | 'voting'
  // It voted until a check of its identity began: requests wait for the result, and no quarantine is reported.
  | 'checking'
  // It may lack acknowledged writes, and needs a new marker.
  | 'unknown'
  // It has not been read, is in doubt, or has a marker whose wait is not over.
  | 'quarantined';

type DataEvent = 'doubt' | 'check' | 'check ended' | 'unknown data' | 'disconnect' | 'wait' | 'wait ended';

// Of an event that is not listed, nothing follows.
const TRANSITIONS: Readonly<Record<DataState, { readonly [event in DataEvent]?: DataState }>> = {
  voting: { doubt: 'quarantined', check: 'checking', 'unknown data': 'unknown', wait: 'quarantined' },
  checking: { 'check ended': 'quarantined', 'unknown data': 'unknown', wait: 'quarantined', 'wait ended': 'voting' },
  // What happens without a connection is not known: a wait for what was lost before may not be enough.
  unknown: { disconnect: 'quarantined', wait: 'quarantined', 'wait ended': 'voting' },
  quarantined: { 'unknown data': 'unknown', 'wait ended': 'voting' },
};

export class ServerRecord extends DataRecord {
  clock: ServerClock;
  state: DataState = 'quarantined';
  // Changes with every new piece of information: a report that was read before is then out of date.
  revision = 0;
  marker: Marker | undefined;
  seenSince: Instant | undefined;
  // When this client first saw that the data is unknown.
  unknownSince: Instant | undefined;
  // A step of the clock is being judged: no grant counts meanwhile, whatever the state.
  isSuspect = false;
  // Other data was here before, as this process knows: then what the data lacks may have been written.
  hasLostData = false;
  // By the clock of the server when it was read last, which may have been set back: others may take it for new.
  looksYoung = false;
  // Whether this process held a lock when it first saw the marker in place of another one.
  markerChangedWhileHolding = false;
  // Whether the wait of the marker may have to be lengthened for a lock of this process.
  mustExtendQuarantine = false;
  // Data other than that of `marker` was seen since that was accepted, over whichever connection: the clock of its server
  // is another one. If it was unknown, a restart does not make the data of `marker` known.
  otherData: Exclude<Relation, 'known'> | undefined;
  // The largest ttl that was announced to every master, according to this one. In milliseconds.
  knownTtl = 0;
  isAnnounced = false;
  announcedRefusal: string | undefined;
  // Of the data that was here before, by nonce: the address may lead back to it.
  private readonly clocks = new Map<string, ServerClock>();
  private unknownRun: string | undefined;
  // By the server's clock, in milliseconds.
  private unknownAt = 0;
  firstGeneration: string | undefined;
  // When a report of other data was last received, by the monotonic clock of this process.
  private otherSeenAt = -Infinity;
  readonly wait = new QuarantineWait();
  private confirmed: { readonly ttl: number; readonly sent: Instant } | undefined;
  readonly reading: PendingContact;
  readonly heartbeat: PendingContact;
  // When the server last answered a request that was checked like a vote. Monotonic, in milliseconds.
  contactedAt = -Infinity;

  constructor(
    readonly server: GuardedServer,
    private readonly window: () => number,
  ) {
    super(UNREAD_DATA);
    this.clock = new ServerClock(window);
    this.reading = new PendingContact(server);
    this.heartbeat = new PendingContact(server);
  }

  get nonce(): string {
    return this.marker?.nonce ?? '';
  }

  get votes(): boolean {
    return this.state === 'voting';
  }

  get withholdsVotes(): boolean {
    return this.isSuspect || this.state === 'unknown' || this.state === 'quarantined';
  }

  quarantineAt(now: Instant): Quarantine | undefined {
    if (!this.withholdsVotes) return undefined;
    return { reason: this.reasonNow, remaining: this.wait.remainingAt(now) };
  }

  get reasonNow(): string {
    const { reason, refusal } = this;
    return refusal === undefined ? reason : `${reason}, and it cannot be marked: ${refusal}`;
  }

  // Of the marker that it needs; `undefined` if it needs none.
  get refusal(): string | undefined {
    return this.state === 'unknown' || this.step !== undefined ? this.server.markRefusal : undefined;
  }

  confirmTtl(ttl: number, sent: Instant): void {
    if (ttl > 0 && !this.isStale(sent)) this.confirmed = { ttl, sent };
  }

  // If the server may not have known of the ttl when it gave an answer that arrived at `received`, the quarantine of
  // another master could be too short for it.
  knewTtl(ttl: number, received: Instant): boolean {
    const { confirmed } = this;
    // Protocol 8.9
    return confirmed !== undefined && ttl <= confirmed.ttl && elapsedBetween(confirmed.sent, received) <= KNOWN_FOR;
  }

  // The clocks of this process have stood still, since a moment or later: nothing that was read before counts any more.
  // `elsewhere` is the same for the servers that the address led to before: it may lead back.
  noteLag(by: Movement, elsewhere: Movement, { since, now }: { readonly since: number; readonly now: number }): void {
    this.clock.shift(by, since);
    for (const clock of this.clocks.values()) clock.shift(elsewhere, since);
    this.noteStandstill(now);
    this.confirmed = undefined;
    this.epoch++;
  }

  relationOf(report: ServerIdentity): Relation {
    const nonce = this.otherData === 'unknown' ? NO_NONCE : this.nonce;
    return relationOf(report, { isDurable: this.server.isDurable, nonce });
  }

  // Whether the report comes from the data of `marker`, so that its time is shown by the clock of the samples.
  isOf(report: ServerIdentity): boolean {
    return report.marker?.nonce === this.nonce && this.relationOf(report) !== 'unknown'; // @mutant clocks-of-two-servers-compared
  }

  // Of data that cannot be accepted as it is. Returns whether that is new: then reports that were read before are out of
  // date. A busy process gets many reports of the same, and none of them may make a reading useless.
  noteOther(report: ServerIdentity, received: Instant): boolean {
    const { otherData, votes } = this;
    this.otherSeenAt = received.monotonic;
    if (this.relationOf(report) === 'unknown') this.otherData = 'unknown';
    else if (!this.isOf(report)) this.otherData ??= 'renamed';
    const isNew = votes || this.otherData !== otherData;
    if (votes) this.doubt(reasonFor(report, this.marker));
    else if (isNew) this.revision++;
    return isNew;
  }

  // The data was asked for before other data was last seen here.
  isOutdated(asked: Instant): boolean {
    return asked.monotonic < this.otherSeenAt;
  }

  // Milliseconds by which the clock moved forward, kept until all clients can learn of it.
  get step(): number | undefined {
    return this.clock.step;
  }

  // All clients have to learn of the step before the data may be accepted again.
  owesAccusation(report: ServerIdentity): boolean {
    return this.step !== undefined && this.isOf(report) && !this.isNewAt(report);
  }

  // New masters without a holder vote early, by the clocks of the clients.
  private isNewAt(report: ServerIdentity): boolean {
    const { marker } = report;
    return marker?.isGuess === true && !marker.isVetoed && this.isYoungAt(report);
  }

  // Not called while the address leads to another master. Of swapped addresses, the data began at the other one.
  noteGeneration({ generation }: Marker, others: readonly ServerRecord[]): void {
    this.firstGeneration ??= generation;
    const isKnown = [this, ...others].some(({ firstGeneration }) => firstGeneration === generation);
    this.hasLostData ||= !isKnown;
  }

  // It needs the veto of a holder.
  get isUnvetoed(): boolean {
    return this.marker?.isVetoed === false && (this.looksYoung || !this.votes);
  }

  noteDisconnect(): void {
    this.follow('disconnect');
  }

  suspect(reason: string): void {
    this.revision++;
    this.isSuspect = true;
    this.epoch++;
    this.reason = reason;
  }

  // No grant of the server counts until its identity has been checked.
  doubt(reason: string, event: 'doubt' | 'check' = 'doubt'): void {
    this.revision++;
    if (this.votes) this.reason = reason;
    this.follow(event);
    this.epoch++;
    this.comparedAt = undefined;
  }

  check(): void {
    const { votes, revision } = this;
    this.doubt('its identity is being checked', 'check');
    // One refusal more shows nothing new: a busy process gets them all the time.
    if (!votes) this.revision = revision;
  }

  endCheck(): void {
    this.follow('check ended');
  }

  noteUnknown(report: ServerIdentity, received: Instant, shortestWait = Infinity): void {
    this.revision++;
    const wasKnown = this.state !== 'unknown';
    if (wasKnown) this.reason = reasonFor(report, this.marker);
    // In as long as the shortest wait, it may have voted and lost its data again since the reading before.
    const unseen = Math.min(UNSEEN.max, Math.max(UNSEEN.min, shortestWait));
    const isFirst = wasKnown || this.unknownRun !== report.run;
    if (isFirst || report.time - this.unknownAt > unseen) this.unknownSince = received;
    this.unknownAt = report.time;
    this.unknownRun = report.run;
    this.replid = report.replid;
    this.otherData = 'unknown';
    if (this.votes) this.doubt(this.reason);
    this.follow('unknown data');
  }

  // The server votes when `from` has passed by its clock.
  accept(report: ServerIdentity, asked: Instant, received: Instant): void {
    const { marker } = report;
    if (!marker) return;
    this.revision++;
    const isNew = marker.nonce !== this.marker?.nonce;
    if (isNew) {
      // Not since the request: the marker may be younger than that, and its quarantine does not end earlier.
      this.seenSince = received;
      this.turnTo(marker);
      if (this.marker !== undefined || this.votes) this.epoch++;
    }
    if (isNew || report.replid !== this.replid) this.comparedAt = undefined;
    this.replid = report.replid;
    this.marker = marker;
    this.knownTtl = marker.knownTtl;
    this.otherData = undefined;
    const since = this.seenSince?.monotonic ?? received.monotonic;
    // Protocol 8.2
    this.looksYoung = marker.from > report.time;
    const isYoung = this.looksYoung || this.wait.endsTooEarly(marker.from, received);
    if (this.looksYoung) this.wait.watch(marker.from, marker.from - report.time, asked);
    // A nonce that has voted keeps its vote: its quarantine has ended, even if the clock is set back afterwards.
    if (!isNew && this.votes) return;
    if (this.isNewAt(report)) this.clock.step = undefined;
    this.follow(isYoung || this.step !== undefined ? 'wait' : 'wait ended'); // @mutant a-new-marker-votes-at-once
    if (this.step !== undefined) this.reason = 'its clock has moved';
    if (!isYoung) return;
    this.reason = marker.reason;
    const left = Math.max(marker.from - report.time, this.wait.leftAt(asked));
    this.wait.limit(asked, Math.min(left, marker.wait - Math.max(0, asked.monotonic - since)));
  }

  // A step leads to one accusation only: samples from before a marker say nothing about the time after it. They still
  // do if the address led to another server meanwhile, and now leads back.
  private turnTo({ nonce, run, replid }: Marker): void {
    this.confirmed = undefined;
    this.wait.forget();
    const { marker: before, clocks } = this;
    // A marker that the same server has in its place does not come back.
    const isGone = before?.run === run && before.replid === replid && run !== '';
    if (!isGone) clocks.set(this.nonce, this.clock);
    this.clock = clocks.get(nonce) ?? new ServerClock(this.window);
    clocks.delete(nonce);
    if (clocks.size <= MAX_CLOCKS) return;
    const [first, ...rest] = clocks;
    const dropped = [first, ...rest.slice(0, -1)].find((each) => each?.[1].step === undefined) ?? first;
    if (dropped) clocks.delete(dropped[0]);
  }

  // By the clock of this process, the quarantine is over: the server votes, for this process only.
  endWait(): void {
    this.revision++;
    this.follow('wait ended');
    this.server.onVoting();
  }

  private follow(event: DataEvent): void {
    this.state = TRANSITIONS[this.state][event] ?? this.state;
  }

  isYoungAt(report: ServerIdentity): boolean {
    // Protocol 8.4
    return report.marker !== undefined && report.marker.from > report.time;
  }
}

// Requests of one kind to one server, which may hang.
class PendingContact {
  // When the first of them was sent, or the connection was last replaced. Monotonic, in milliseconds.
  private since: number | undefined;

  constructor(private readonly server: Pick<GuardedServer, 'reconnect'>) {}

  get isUnderWay(): boolean {
    return this.since !== undefined;
  }

  begin(now: number): void {
    this.since ??= now;
  }

  end(): void {
    this.since = undefined;
  }

  // In milliseconds.
  ageAt(now: number): number {
    return this.since === undefined ? 0 : now - this.since;
  }

  // `limit` in milliseconds, in which nothing has arrived over the connection.
  reconnectAfter(limit: number, now: number): void {
    if (this.since === undefined || now - this.since < limit) return;
    this.since = now;
    this.server.reconnect();
  }
}
