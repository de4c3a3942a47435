import { elapsedBetween, type Instant } from '../../core/clock.js';
import type { GuardGroup } from './guard-group.js';
import type { Announcement, ServerRecord } from './server-record.js';

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
