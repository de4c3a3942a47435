import { type Clock, elapsedBetween, type Instant } from '../../core/clock.js';
import type { LockObserver } from '../../core/observer.js';
import { quorumOf } from '../../core/acquire/quorum-call.js';
import type { Random } from '../../core/holder.js';
import { driftOf, type Settings } from '../../core/settings/settings.js';
import type { ServerIdentity } from '../replies.js';
import type { Announcement, ServerRecord } from './server-record.js';
import type { Marker } from './marker.js';

// Bounds of the time limit for one answer of a server about itself, in milliseconds.
const MIN_PATIENCE = 100;
export const MAX_PATIENCE = 1_000;
// Between these bounds, the time limit is this many timeouts of a vote.
const TIMEOUTS = 4;

export function patienceOf({ masterTimeout }: Settings): number {
  return Math.min(MAX_PATIENCE, Math.max(MIN_PATIENCE, TIMEOUTS * masterTimeout));
}

export interface RestartGuardContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: LockObserver;
  // Names this process in the markers that it writes.
  readonly instance: string;
  readonly clockLags: (milliseconds: number) => void;
}

export type Reports = ReadonlyMap<ServerRecord, ServerIdentity>;

// Of each server one: while two addresses lead to it, they are one master.
// Protocol 8.10
export function distinct(reports: Reports): Reports {
  return new Map(firstOfEach([...reports], ([, { run, marker }]) => run || idOf(marker)));
}

// Without the permission for INFO, a process still sees the run in the marker.
export function idOf(marker: Marker | undefined): string {
  return marker?.run || marker?.nonce || '';
}

function firstOfEach<T>(all: readonly T[], idIn: (one: T) => string): readonly T[] {
  const seen = new Set<string>();
  return all.filter((one) => {
    const id = idIn(one);
    return id === '' || seen.size < seen.add(id).size;
  });
}

// The servers of one restart guard, and what all of its parts need: time, time limits, and whether a lock is held.
export class GuardGroup {
  readonly records: ServerRecord[] = [];
  private locks = 0;
  private attempts = 0;
  // Changes when all attempts under way cease to count.
  private generation = 0;
  // Until when keys of a released lock stay taken, as `minHold` demands. Monotonic, in milliseconds.
  private engagedUntil = -Infinity;
  pendingAnswers = 0;
  // They guard themselves. New is one without data, as long as no partition votes.
  readonly clusters: { votes(): boolean; isNew(): boolean }[] = [];

  constructor(readonly context: RestartGuardContext) {}

  // Monotonic, in milliseconds.
  get now(): number {
    return this.context.clock.read().monotonic;
  }

  get quorum(): number {
    return quorumOf(this.records.length + this.clusters.length);
  }

  get voting(): number {
    let voting = 0;
    for (const { votes } of this.records) if (votes) voting++;
    for (const cluster of this.clusters) if (cluster.votes()) voting++;
    return voting;
  }

  // Masters that have lost nothing, as far as is known: also those whose identity is being checked again.
  get trusted(): number {
    const clusters = this.clusters.filter((cluster) => cluster.votes()).length;
    return (
      clusters + this.distinctOf(this.records.filter(({ state }) => state === 'voting' || state === 'checking')).length
    );
  }

  // One of each server, as far as is known: of several addresses that lead to it, the first of those that are given.
  // Protocol 8.10
  distinctOf(records: readonly ServerRecord[]): readonly ServerRecord[] {
    return firstOfEach(records, ({ marker }) => idOf(marker));
  }

  // This process holds a lock or keeps its keys taken, or has an attempt under way that counts.
  get isEngaged(): boolean {
    if (this.locks + this.attempts > 0) return true;
    return this.engagedUntil > 0 && this.now < this.engagedUntil;
  }

  get owesVeto(): boolean {
    return this.records.some(({ isUnvetoed, server }) => isUnvetoed && server.isConnected);
  }

  // Returns a number that identifies the attempt as long as it counts.
  beginAttempt(): number {
    this.attempts++;
    return this.generation;
  }

  // Returns whether the attempt still counts; if so, it has become a lock.
  confirm(attempt: number): boolean {
    if (attempt !== this.generation) return false;
    this.attempts--;
    this.locks++;
    return true;
  }

  abandon(attempt: number): void {
    if (attempt === this.generation) this.attempts--;
  }

  // Too few masters can vote: no attempt under way may succeed, and none stands for a lock.
  voidAttempts(): void {
    this.generation++;
    this.attempts = 0;
  }

  // `keptFor`: milliseconds for which the keys of the lock stay taken.
  disengage(keptFor: number): void {
    this.locks--;
    if (keptFor > 0) this.engagedUntil = Math.max(this.engagedUntil, this.now + keptFor);
  }

  // In milliseconds, if no lock has a longer ttl.
  quarantineFor(ttl: number): number {
    return Math.ceil(ttl + driftOf(this.context.settings, ttl)); // @mutant quarantine-too-short
  }

  // In milliseconds.
  quarantineOf({ server }: ServerRecord, ttl: number): number {
    return this.quarantineFor(ttl) + server.handover;
  }

  // The time limit for one answer, in milliseconds: a server that hangs does not delay what the others report.
  get patience(): number {
    return patienceOf(this.context.settings);
  }

  // Resolves with `undefined` if the promise rejects or takes longer than the limit, in milliseconds.
  within<T>(limit: number, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      this.pendingAnswers++;
      let isOver = false;
      const end = (value: T | undefined): void => {
        if (isOver) return;
        isOver = true;
        this.pendingAnswers--;
        timer.cancel();
        resolve(value);
      };
      const timer = this.context.clock.schedule(limit, () => end(undefined)).unref();
      promise.then(end, () => end(undefined));
    });
  }

  // Once for each refusal of a marker.
  announceRefusal(record: ServerRecord): void {
    const { server, refusal } = record;
    if (refusal !== undefined && refusal !== record.announcedRefusal) {
      this.context.observer.masterRefused?.(server.name, record.reasonNow);
    }
    record.announcedRefusal = refusal;
  }

  announce(record: ServerRecord): void {
    const { observer, clock } = this.context;
    const { name } = record.server;
    if (record.votes) {
      if (record.isAnnounced || record.announcedRefusal !== undefined) observer.masterVotesAgain?.(name);
      record.isAnnounced = false;
      return;
    }
    if (record.isAnnounced) return;
    const quarantine = record.quarantineAt(clock.read());
    // A clock that was set back makes an old marker look young: its wait is over.
    if (!quarantine || quarantine.remaining <= 1) return;
    record.isAnnounced = true;
    observer.masterQuarantined?.(name, quarantine.reason, quarantine.remaining);
  }
}

// In milliseconds.
const ANNOUNCE_AFTER = 2_000;
// After a failure, in milliseconds.
const RETRY_AFTER = 1_000;

export const NOTHING: Announcement = Object.freeze({ ttl: 0, lengthens: false, known: 0 });

// Keeps the masters informed of the largest ttl in use: after a loss of data, a master is quarantined for that long. A
// ttl that is larger than any before is used only after every master has confirmed it.
export class TtlAnnouncements {
  // That this process has used, in milliseconds.
  smallestTtl: number;
  private announced: { readonly ttl: number; readonly at: Instant | undefined } = { ttl: 0, at: undefined };
  // The announced ttls that a lock may still have, until a monotonic time.
  private used: readonly { readonly ttl: number; readonly until: number }[] = [];
  // The largest ttl in use since the last announcement, in milliseconds.
  private recentTtl = 0;
  private pending: { readonly ttl: number; readonly permitted: Promise<number> } | undefined;
  private cut: { readonly ttl: number; readonly until: number } | undefined;
  private hasWarned = false;

  constructor(private readonly group: GuardGroup) {
    this.smallestTtl = group.context.settings.ttl;
  }

  // The largest ttl that a lock of this process may have, in milliseconds.
  get usedTtl(): number {
    const { now } = this.group;
    return this.used.reduce((largest, { ttl, until }) => (until > now ? Math.max(largest, ttl) : largest), 0);
  }

  // @see Witness.announceTtl
  announceTtl(ttl: number, now = this.group.context.clock.read()): number | Promise<number> {
    if (ttl < this.smallestTtl) this.smallestTtl = ttl;
    if (ttl > this.recentTtl) this.recentTtl = ttl;
    const { ttl: announced, at } = this.announced;
    if (at && ttl <= announced && elapsedBetween(at, now) < ANNOUNCE_AFTER) return ttl;
    const known = this.ttlKnownToAll;
    // Too few masters are known for any lock: nothing can be announced, and nothing will be granted.
    if (known === undefined) return ttl;
    if (ttl <= known) {
      const level = Math.min(this.recentTtl, known);
      this.recentTtl = ttl;
      this.announceAgain(level);
      return ttl;
    }
    if (this.cut && now.monotonic < this.cut.until) {
      if (!this.announced.at) this.announceAgain(this.cut.ttl);
      this.use(this.cut.ttl);
      return Math.min(ttl, this.cut.ttl);
    }
    if (this.pending && ttl <= this.pending.ttl) return this.pending.permitted.then((most) => Math.min(ttl, most));
    const permitted = this.raise(ttl, known).finally(() => (this.pending = undefined));
    this.pending = { ttl, permitted };
    return permitted;
  }

  // An announcement may not have arrived, for example over a connection that was replaced: repeats it soon.
  repeat(): void {
    this.announced = { ttl: this.announced.ttl, at: undefined };
  }

  private announceAgain(ttl: number): void {
    this.announced = { ttl, at: this.group.context.clock.read() };
    this.use(ttl);
    void this.announce(ttl);
  }

  private use(ttl: number): void {
    const { now } = this.group;
    const until = now + this.group.quarantineFor(ttl) + 2 * ANNOUNCE_AFTER;
    this.used = [...this.used.filter((one) => one.until > now && (one.ttl > ttl || one.until > until)), { ttl, until }];
  }

  // A small request that is checked like a vote; resolves with whether the server took it.
  async beat(record: ServerRecord, announcement = NOTHING): Promise<boolean> {
    // Requests to a server that hangs stay bounded: announcements by the number of callers, all others by this line.
    const { heartbeat, server } = record;
    if (announcement === NOTHING && heartbeat.isUnderWay) return false;
    heartbeat.begin(this.group.now);
    const known = await server.beat(announcement);
    heartbeat.end();
    if (known !== undefined) record.knownTtl = known;
    return known !== undefined;
  }

  // The smallest that any master reports, because a process that can read only that one relies on it. The `ttl` option,
  // on which all processes agree, counts as confirmed. `undefined` until a quorum is known.
  private get ttlKnownToAll(): number | undefined {
    const { records, clusters, quorum, context } = this.group;
    const known = this.group.distinctOf(records).flatMap(({ marker, knownTtl }) => (marker ? [knownTtl] : []));
    if (known.length + clusters.length < quorum) return undefined;
    const smallest = known.length < records.length ? 0 : Math.min(...known);
    return Math.max(context.settings.ttl, smallest);
  }

  // Resolves with the names of the masters that did not confirm the ttl within the limit.
  private async announce(
    ttl: number,
    known = 0,
    limit = this.group.context.settings.masterTimeout,
  ): Promise<readonly string[]> {
    const { records } = this.group;
    const beats = records.map((record) => this.beat(record, { ttl, lengthens: false, known }));
    const confirmed = await Promise.all(beats.map((beat) => this.group.within(limit, beat)));
    const heard = new Set(this.group.distinctOf(records.filter((_, index) => confirmed[index] === true)));
    return records.filter((each) => !heard.has(each)).map(({ server }) => server.name);
  }

  // For a ttl that is larger than any before. Takes at most one master timeout. Resolves with the one before if a
  // master does not confirm it.
  private async raise(ttl: number, before: number): Promise<number> {
    const { group } = this;
    const until = group.now + group.context.settings.masterTimeout;
    let missing = await this.announce(ttl);
    // Protocol 8.9
    // A second time: a master that lost its data in between has learned a smaller ttl from one that had not confirmed yet.
    if (missing.length === 0) missing = await this.announce(ttl, ttl, Math.max(0, until - group.now));
    if (missing.length === 0) {
      this.announced = { ttl, at: group.context.clock.read() };
      this.use(ttl);
      this.cut = undefined;
      return ttl;
    }
    this.cut = { ttl: before, until: group.now + RETRY_AFTER };
    this.announceAgain(before);
    if (!this.hasWarned) group.context.observer.ttlCut?.(ttl, before, missing);
    this.hasWarned = true;
    return before;
  }
}
