import type { Clock, Instant, Timer } from '../core/clock.js';
import type { Observer } from '../core/observer.js';
import { quorumOf } from '../core/quorum.js';
import type { Random } from '../core/random.js';
import { driftOf, ownName, type Settings } from '../core/settings.js';
import type { Witness } from '../core/witness.interface.js';
import { judge, type Judgement, movement, type Sample, sampleOf } from './clock-guard.js';
import { DataIdentity, type GuardedServer, type MarkerChange, reasonFor } from './data-identity.js';
import type { ServerReport } from './identity.js';
import { announcementOf, type Marker } from './marker.js';

/** A process that holds a lock completes a contact with some master at least this often, in milliseconds. */
const CONTACT_INTERVAL = 1_000;
/** New masters vote after this many milliseconds without a veto: longer than a contact interval, a reconnect and a command. */
export const EARLY_AFTER = 2_500;
/** Fewer masters could all be new because each of them lost its data. */
export const EARLY_FROM = 3;
/** While a master waits, its marker is read this often, in milliseconds. */
const LOOK_INTERVAL = 250;
/** A process that does nothing still samples the clocks this often, in milliseconds. */
const SAMPLE_INTERVAL = 10_000;
/** How long a comparison of a server's history is fresh, in milliseconds. */
const COMPARISON_INTERVAL = 1_000;
/** Bounds of how long one server may take to say who it is, in milliseconds: so many timeouts of a vote. */
const [LEAST_PATIENCE, MOST_PATIENCE, TIMEOUTS] = [100, 1_000, 4];
/** Other processes may use shorter ttls than this one: steps of clocks that matter to these are noticed anyway. In milliseconds. */
const SHORT_TTL = 1_000;
/** How often another client may write a marker between our reading and writing. */
const MOST_RACES = 10;
/** A ttl that is in use is announced again after so many milliseconds. */
const ANNOUNCE_AFTER = 2_000;

export interface RestartGuardContext {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly random: Random;
  readonly observer: Observer;
  /** Names this process in the markers that it writes. */
  readonly instance: string;
  /** Called when this client's own clock turns out to be behind, by so many milliseconds. */
  readonly clockLags: (milliseconds: number) => void;
}

/** The largest ttl, in milliseconds, that a lock from before may have. */
interface LongestTtl {
  readonly ttl: number;
  /** Whether no process has announced it. */
  readonly isGuess: boolean;
}

type Reports = ReadonlyMap<DataIdentity, ServerReport>;

/** A report, and what was known when it was asked for. */
interface Reading {
  readonly report: ServerReport;
  readonly revision: number;
}

/**
 * Keeps masters from voting that may have lost what they acknowledged.
 *
 * What counts is not how old a server is, but whether its data is the data that was acknowledged: a marker in the data
 * carries the run and the history that it belongs to, and a nonce. Where they do not fit, the master waits until every
 * lock from before has ended, and all clients learn of it from the marker.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ on delayed restarts
 */
export class RestartGuard implements Witness {
  /** Name of the marker on the masters. */
  readonly markerName: string;
  private readonly identities: DataIdentity[] = [];
  private engagements = 0;
  private contactedAt = -Infinity;
  /** Whether this process was engaged since the last tick; and since the last few of them. */
  private wasEngaged = false;
  private isBusy = false;
  private idleSince = -Infinity;
  private timer: Timer | undefined;
  private timerDue = Infinity;
  private looking: Promise<void> | undefined;
  private lookAgain = false;
  /** What all new masters looked like when this client first saw all of them, and when that was. */
  private sighting: { readonly markers: string; readonly since: number } | undefined;
  private announced = { ttl: 0, at: -Infinity };
  private recentTtl = 0;
  private smallestTtl: number;
  private pending: { readonly ttl: number; readonly permitted: Promise<number> } | undefined;
  private cut: { readonly ttl: number; readonly until: number } | undefined;
  private warnedOfCut = false;
  private closed = false;
  /** Number of answers that this guard waits for. */
  private limits = 0;

  constructor(private readonly context: RestartGuardContext) {
    const { settings } = context;
    this.markerName = ownName(settings, 'incarnation');
    this.smallestTtl = settings.ttl;
  }

  /** The identity of one more server. All servers are added before the first is connected. */
  add(server: GuardedServer): DataIdentity {
    const identity = new DataIdentity(server, () => Math.min(this.smallestTtl, this.context.settings.maxTtl));
    this.identities.push(identity);
    return identity;
  }

  /** Whether there is a server to guard: masters in memory cannot restart without their process. */
  get isNeeded(): boolean {
    return this.identities.length > 0;
  }

  /** Number of timers that have not fired. */
  get pendingTimers(): number {
    return this.limits + (this.timer === undefined ? 0 : 1);
  }

  beginAttempt(): boolean {
    let voting = 0;
    for (const { votes } of this.identities) if (votes) voting++;
    if (voting < quorumOf(this.identities.length)) return false;
    this.engage();
    return true;
  }

  /** This process holds one more lock, or has one more attempt under way that counts. */
  engage(): void {
    if (this.engagements++ > 0) return;
    this.wasEngaged = true;
    this.sighting = undefined;
    if (!this.isBusy) {
      this.isBusy = true;
      this.plan(CONTACT_INTERVAL / 2);
    }
    // What is known to be new must not vote early as long as this process holds a lock.
    if (this.identities.some(({ marker, votes }) => !votes && marker && !marker.isVetoed)) this.look();
  }

  disengage(): void {
    this.engagements--;
  }

  permit(ttl: number): number | Promise<number> {
    if (ttl < this.smallestTtl) this.smallestTtl = ttl;
    if (ttl > this.recentTtl) this.recentTtl = ttl;
    const { ttl: announced, at } = this.announced;
    const { now } = this;
    if (ttl <= announced && now - at < ANNOUNCE_AFTER) return ttl;
    const known = this.ttlKnownToAll;
    // Too few masters are known for any lock: nothing can be said, and nothing will be granted.
    if (known === undefined) return ttl;
    if (ttl <= known) {
      const level = Math.min(this.recentTtl, known);
      this.recentTtl = ttl;
      this.announced = { ttl: level, at: now };
      void this.announce(level);
      return ttl;
    }
    if (this.cut && now < this.cut.until) return Math.min(ttl, this.cut.ttl);
    if (this.pending && ttl <= this.pending.ttl) return this.pending.permitted.then((most) => Math.min(ttl, most));
    const permitted = this.raise(ttl, known).finally(() => (this.pending = undefined));
    this.pending = { ttl, permitted };
    return permitted;
  }

  /** A server has said who it is. */
  meet(identity: DataIdentity, report: ServerReport, asked: Instant): void {
    // What was announced over the connection before may not have arrived.
    this.announced = { ...this.announced, at: -Infinity };
    this.accept(identity, report, asked);
    this.sampled(identity, asked, report.time);
    if (!identity.votes || (identity.wasMetEngaged && !report.marker?.isVetoed)) this.look();
    else this.plan(this.interval);
  }

  /** Resolves when what was read last has had its consequences. */
  decided(): Promise<void> {
    return this.looking ?? Promise.resolve();
  }

  /** A server has answered a request that was checked like a vote. */
  contacted(): void {
    this.contactedAt = this.now;
  }

  /**
   * Takes the time that came with an answer.
   *
   * @param time wall clock of the server in milliseconds
   * @returns whether what it granted may count
   */
  sampled(identity: DataIdentity, sent: Instant, time: number): boolean {
    const sample = sampleOf(sent, this.context.clock.read(), time);
    const { allowance } = this;
    if (identity.isSuspect) return false;
    if (identity.clock.movedForward(sample) > allowance) {
      void this.judgeStep(identity, sample);
      return false;
    }
    if (identity.clock.movedBack(sample, allowance)) {
      identity.clock.forget();
      // An older state of the machine may have been restored: the marker says whether its data is older, too.
      identity.mistrust('its clock was set back');
      this.look();
    }
    identity.clock.keep(sample);
    return true;
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private get now(): number {
    return this.context.clock.read().monotonic;
  }

  private get isEngaged(): boolean {
    return this.engagements > 0;
  }

  /** How far a clock may move before a key of the smallest ttl in use expires early, in milliseconds. */
  private get allowance(): number {
    return driftOf(this.context.settings, Math.min(this.smallestTtl, SHORT_TTL));
  }

  /** For how long a master waits, in milliseconds, where ttls are at most so long. */
  private quarantineFor(maxTtl: number): number {
    return Math.ceil(maxTtl + driftOf(this.context.settings, maxTtl));
  }

  // Reading markers, and deciding.

  /** Reads all masters, and takes the consequences. One round at a time. */
  private look(): void {
    this.lookAgain = true;
    if (this.looking || this.closed) return;
    this.looking = this.lookWhileNeeded().finally(() => {
      this.looking = undefined;
      if (!this.closed) this.plan(this.interval);
    });
  }

  private async lookWhileNeeded(): Promise<void> {
    for (let round = 0; this.lookAgain && round < MOST_RACES && !this.closed; round++) {
      this.lookAgain = false;
      const asked = this.context.clock.read();
      await this.decide(this.upToDate(await this.readAll()), asked);
    }
  }

  /** While one server was slow to answer, another may have said something new over another connection. */
  private upToDate(readings: ReadonlyMap<DataIdentity, Reading>): Reports {
    const reports = new Map<DataIdentity, ServerReport>();
    for (const [identity, { report, revision }] of readings) {
      if (revision === identity.revision) reports.set(identity, report);
      else this.lookAgain = true;
    }
    return reports;
  }

  private async readAll(): Promise<ReadonlyMap<DataIdentity, Reading>> {
    const reports = new Map<DataIdentity, Reading>();
    await Promise.all(
      this.identities.map(async (identity) => {
        const { revision } = identity;
        const report = await this.within(this.patience, identity.server.report());
        if (report) reports.set(identity, { report, revision });
      }),
    );
    if (reports.size > 0) this.contacted();
    return reports;
  }

  private async decide(reports: Reports, asked: Instant): Promise<void> {
    if (this.closed) return;
    const wasUnknown = new Set(this.identities.filter(({ unknownSince }) => unknownSince !== undefined));
    for (const [identity, report] of reports) {
      // What is being judged or accused is read again afterwards.
      if (identity.isSuspect) continue;
      await this.recognize(identity, report, asked);
      if (identity.nonce !== '' && identity.step === undefined) this.sampled(identity, asked, report.time);
    }
    for (const [identity, report] of reports) {
      if (identity.unknownSince === undefined) continue;
      // What the others say has to be read after it is known that this one's data is unknown.
      if (wasUnknown.has(identity)) await this.markUnknown(identity, report, reports, asked);
      else this.lookAgain = true;
    }
    for (const [identity, report] of reports) await this.attend(identity, report, { asked, reports });
    await this.openEarly(reports);
  }

  /** Finds out whether the data of a server is known, and accepts its marker if it is. */
  private async recognize(identity: DataIdentity, report: ServerReport, asked: Instant): Promise<void> {
    const { marker } = report;
    const mayBeDurable = report.hasAppendOnlyFile && report.replicas === 0 && !report.wasPromoted;
    const asksForSync = mayBeDurable && (marker === undefined || marker.run !== report.run);
    const syncsAlways = asksForSync && ((await this.within(this.patience, identity.server.syncsAlways())) ?? false);
    const relation = identity.relationOf(report, syncsAlways);
    if (relation === 'unknown') {
      identity.doubt(report, asked);
      return;
    }
    if (relation === 'known') {
      if (identity.step !== undefined) await this.accuse(identity, report, identity.step);
      if (identity.step === undefined) this.accept(identity, report, asked);
      return;
    }
    const durable = syncsAlways ? 1 : marker?.isDurable ? 1 : 0;
    await this.change(identity, report, { run: report.run, replid: report.replid, durable });
  }

  private accept(identity: DataIdentity, report: ServerReport, asked: Instant): void {
    if (identity.isSuspect || identity.step !== undefined) return;
    const relation = identity.relationOf(report, false);
    if (relation !== 'known') {
      if (identity.votes) identity.mistrust(reasonFor(report, identity.marker));
      return;
    }
    const isFirstSight = report.marker?.nonce !== identity.nonce;
    const voted = identity.votes;
    // The data was replaced while this process held a lock: the others have to hear of the lock.
    if (isFirstSight) identity.wasMetEngaged = this.isEngaged && identity.nonce !== '';
    identity.accept(report, asked, report.marker?.wait ?? 0);
    // A lock from before may have a ttl that the marker has not heard of.
    if (isFirstSight) identity.owesLengthening = this.isEngaged && !identity.votes;
    this.tell(identity);
    if (!voted && identity.votes) identity.server.onVoting();
  }

  /** Writes a marker for data that may lack what was acknowledged: the server waits until every lock has ended. */
  private async markUnknown(
    identity: DataIdentity,
    report: ServerReport,
    reports: Reports,
    asked: Instant,
  ): Promise<void> {
    const longest = this.longestTtl(identity, reports, asked);
    if (longest === undefined) return;
    const { ttl, isGuess } = longest;
    // A process that knows of longer ttls gets the time to say so.
    const length = isGuess ? Math.max(this.quarantineFor(ttl), EARLY_AFTER) : this.quarantineFor(ttl);
    const syncsAlways =
      report.hasAppendOnlyFile &&
      report.replicas === 0 &&
      ((await this.within(this.patience, identity.server.syncsAlways())) ?? false);
    await this.change(identity, report, {
      ...{ run: report.run, replid: report.replid, durable: syncsAlways ? 1 : 0 },
      ...{
        ttls: isGuess ? '' : announcementOf(ttl, report.time + length),
        known: this.knownTtl(identity, reports, ttl),
      },
      ...{ guess: isGuess ? 1 : 0, from: report.time + length },
      ...this.signature(report, identity.reason),
    });
  }

  /** The largest ttl that a lock from before may have; `undefined` while that is not known. */
  private longestTtl(identity: DataIdentity, reports: Reports, asked: Instant): LongestTtl | undefined {
    const { settings } = this.context;
    const held = this.isEngaged ? this.announced.ttl : 0;
    const others = this.markersOfOthers(identity, reports);
    // A master that waits because nothing was known knows no more than this one.
    const sources = others.filter(({ marker, isYoung }) => !(isYoung && marker.isGuess)).map(({ marker }) => marker);
    if (sources.length > 0) return { ttl: Math.max(held, this.ttlInUse(sources)), isGuess: false };
    const guesses = others.map(({ marker }) => marker.knownTtl);
    const own = Math.max(held, identity.knownTtl, settings.maxTtl, ...guesses);
    const guess = { ttl: own, isGuess: true };
    if (reports.size === this.identities.length) return guess;
    // Without a quorum there is nothing to vote on, and another master that can be read later may know of longer ttls.
    if (reports.size < quorumOf(this.identities.length)) {
      identity.unknownSince = asked;
      return undefined;
    }
    // A majority has lost its data, and the others cannot be asked: first wait, so that a process that knows of longer
    // ttls can write the marker.
    const since = identity.unknownSince ?? asked;
    const waited = this.now - since.monotonic;
    const length = this.quarantineFor(own);
    if (waited >= length) return guess;
    identity.wait(since, 2 * length);
    // At boot, the others may be connected a moment later.
    if (waited > MOST_PATIENCE) this.tell(identity);
    return undefined;
  }

  /** The markers of the other masters whose data is known. */
  private markersOfOthers(
    identity: DataIdentity,
    reports: Reports,
  ): readonly { readonly marker: Marker; readonly isYoung: boolean }[] {
    return [...reports].flatMap(([other, report]) => {
      const { marker } = report;
      if (other === identity || other.unknownSince !== undefined || !marker) return [];
      return [{ marker, isYoung: other.isYoungAt(report) }];
    });
  }

  /** The largest ttl that may be in use, as other masters say. */
  private ttlInUse(others: readonly Marker[]): number {
    const { settings } = this.context;
    const announced = Math.max(settings.ttl, ...others.map(({ maxTtl }) => maxTtl));
    // Each lock was announced on a quorum: so many of the others have heard of it. The bound of this process says nothing
    // about the locks of others, which may never be so long.
    const areEnough = others.length > this.identities.length - quorumOf(this.identities.length);
    return areEnough ? announced : Math.max(announced, ...others.map(({ knownTtl }) => knownTtl));
  }

  /** What every master has been told of, as far as the others say; where none says anything, this is a new beginning. */
  private knownTtl(identity: DataIdentity, reports: Reports, maxTtl: number): number {
    const others = this.markersOfOthers(identity, reports).map(({ marker }) => marker.knownTtl);
    return others.length > 0 ? Math.max(...others) : maxTtl;
  }

  /** What a young marker asks of this process: a veto while it holds a lock, and an end after the longest wait. */
  private async attend(
    identity: DataIdentity,
    report: ServerReport,
    { asked, reports }: { readonly asked: Instant; readonly reports: Reports },
  ): Promise<void> {
    const { marker } = report;
    if (identity.isSuspect || !marker || marker.nonce !== identity.nonce || identity.unknownSince !== undefined) return;
    const isYoung = identity.isYoungAt(report);
    if (isYoung && identity.owesLengthening) {
      const took = this.beat(identity, { ttl: this.announced.ttl, lengthens: true, known: 0 });
      identity.owesLengthening = (await this.within(this.patience, took)) !== true;
      this.lookAgain = true;
      return;
    }
    const owesVeto = this.isEngaged && !marker.isVetoed && (isYoung || identity.wasMetEngaged);
    if (!isYoung || identity.votes) {
      if (owesVeto) await this.change(identity, report, { vetoed: 1 });
      return;
    }
    const since = identity.seenSince ?? asked;
    if (asked.monotonic - since.monotonic > marker.wait) {
      // On this client's own clock every lock has ended: a `from` in the future of a corrected clock does no harm.
      await this.change(identity, report, { from: report.time });
    } else if (owesVeto) {
      await this.change(identity, report, { vetoed: 1 });
    } else if (marker.isGuess) {
      await this.improveGuess(identity, report, reports);
    }
  }

  /** A wait that was chosen before any master could say which ttls are in use, ends as one that is chosen now. */
  private async improveGuess(identity: DataIdentity, report: ServerReport, reports: Reports): Promise<void> {
    const voting = [...reports].flatMap(([{ votes }, { marker }]) => (votes && marker ? [marker] : []));
    if (voting.length === 0) return;
    const ttl = Math.max(this.isEngaged ? this.announced.ttl : 0, this.ttlInUse(voting));
    const from = report.time + this.quarantineFor(ttl);
    if (from >= (report.marker?.from ?? 0)) return;
    await this.change(identity, report, { from, guess: 0, ttls: announcementOf(ttl, from) });
  }

  /**
   * Masters that were started together vote early: if this client sees new markers on all of them, and none of them has
   * changed or was vetoed for long enough, no process holds a lock, since it would have spoken.
   */
  private async openEarly(reports: Reports): Promise<void> {
    const { identities } = this;
    const all = [...reports];
    const isQuiet =
      identities.length >= EARLY_FROM &&
      all.length === identities.length &&
      !this.isEngaged &&
      all.every(([{ nonce }, { marker }]) => marker && !marker.isVetoed && marker.nonce === nonce);
    const young = all.filter(([identity, report]) => identity.isYoungAt(report));
    if (!isQuiet || young.length === 0) {
      this.sighting = undefined;
      return;
    }
    const seen = all.map(([{ server }, { marker }]) => `${server.name} ${marker?.nonce ?? ''}`).sort();
    const markers = seen.join('\n');
    if (this.sighting?.markers !== markers) {
      // All of them have to be new when it begins. One whose own wait ends meanwhile still shows a veto.
      this.sighting = young.length === all.length ? { markers, since: this.now } : undefined;
      return;
    }
    const left = EARLY_AFTER - (this.now - this.sighting.since);
    if (left > 0) {
      this.plan(left);
      return;
    }
    await Promise.all(
      young.map(([identity, report]) =>
        this.within(this.patience, identity.server.mark(report, { from: report.time })),
      ),
    );
    this.lookAgain = true;
  }

  private async change(identity: DataIdentity, report: ServerReport, change: MarkerChange): Promise<void> {
    const isChanged = await this.within(this.patience, identity.server.mark(report, change));
    // The next round reads what it says now, whether by this process or by another. A server that refuses has to wait.
    if (isChanged !== undefined) this.lookAgain = true;
  }

  private signature(report: ServerReport, reason: string): MarkerChange {
    const { random, instance } = this.context;
    const vetoed = this.isEngaged ? 1 : 0;
    return { nonce: random.token(), vetoed, by: instance, at: report.time, why: reason };
  }

  // Clocks.

  private async judgeStep(identity: DataIdentity, sample: Sample): Promise<void> {
    const { allowance } = this;
    const steps = identity.clock.before(sample, allowance);
    identity.suspect('its clock has moved');
    const others = this.identities.filter((other) => other !== identity);
    const answers = new Map<DataIdentity, Sample>();
    await Promise.all(
      others.map(async (other) => {
        const sent = this.context.clock.read();
        const report = await this.within(this.patience, other.server.report());
        if (report) answers.set(other, sampleOf(sent, this.context.clock.read(), report.time));
      }),
    );
    const quorum = quorumOf(this.identities.length);
    let judgement: Judgement = UNKNOWN;
    // Two clocks and the one of this client: any of them could be wrong.
    for (const before of this.identities.length < EARLY_FROM ? [] : steps) {
      // The same time has to be looked at on all servers: a sample from after the step says nothing about it.
      const known = others.map((other) => {
        const answer = answers.get(other);
        return answer && other.clock.movementSince(before.received, answer);
      });
      judgement = judge(movement(before, sample), known, { quorum, allowance });
      if (judgement.culprit !== 'unknown') break;
    }
    if (judgement.culprit === 'client') {
      this.context.observer.clientClockLagged?.(judgement.by);
      for (const each of this.identities) each.clock.forget();
      this.context.clockLags(judgement.by);
    } else if (judgement.culprit === 'server' && (await this.stillShows(identity, steps.at(-1), allowance))) {
      identity.step = judgement.by;
      identity.mistrust('its clock has moved');
    }
    identity.clock.forget();
    identity.isSuspect = false;
    this.look();
  }

  /** Whether a step is there the next time, too: a clock of this client that stumbles and catches up shows it once. */
  private async stillShows(identity: DataIdentity, before: Sample | undefined, allowance: number): Promise<boolean> {
    const sent = this.context.clock.read();
    const report = await this.within(this.patience, identity.server.report());
    if (!report || !before) return false;
    return movement(before, sampleOf(sent, this.context.clock.read(), report.time)).least > allowance;
  }

  /** The keys of a server whose clock moved forward expired early: it waits, for all clients. */
  private async accuse(identity: DataIdentity, report: ServerReport, by: number): Promise<void> {
    const { marker } = report;
    // One accusation per step: a marker that is new has come after it.
    if (!marker || marker.nonce !== identity.nonce || identity.isYoungAt(report)) {
      identity.step = undefined;
      return;
    }
    const reason = `its clock jumped forward by ${Math.round(by)} ms`;
    const from =
      report.time + this.quarantineFor(Math.max(marker.storedTtl, this.announced.ttl, this.context.settings.ttl));
    await this.change(identity, report, { ...this.signature(report, reason), vetoed: 1, from });
  }

  // Announcements of ttls.

  /** The largest ttl that every master has been told of, as a quorum says; `undefined` where no quorum can say. */
  private get ttlKnownToAll(): number | undefined {
    const { identities } = this;
    const known = identities.flatMap(({ marker, knownTtl }) => (marker ? [knownTtl] : []));
    return known.sort((a, b) => b - a).at(quorumOf(identities.length) - 1);
  }

  /** Tells all masters of a ttl that is in use. Returns the names of those that did not take it. */
  private async announce(ttl: number, known = 0): Promise<readonly string[]> {
    const announcement = { ttl, lengthens: false, known };
    const beats = this.identities.map((identity) => this.beat(identity, announcement));
    const { masterTimeout } = this.context.settings;
    const confirmed = await Promise.all(beats.map((beat) => this.within(masterTimeout, beat)));
    return this.identities.filter((_, index) => confirmed[index] !== true).map(({ server }) => server.name);
  }

  /** Tells all masters of a larger ttl than any before. Until all of them have heard of it, the one before is used. */
  private async raise(ttl: number, before: number): Promise<number> {
    let missing = await this.announce(ttl);
    // Once more: a master that lost its data in between has learned a smaller ttl from one that had not been told yet.
    if (missing.length === 0) missing = await this.announce(ttl, ttl);
    if (missing.length === 0) {
      this.announced = { ttl, at: this.now };
      this.cut = undefined;
      return ttl;
    }
    this.cut = { ttl: before, until: this.now + CONTACT_INTERVAL };
    if (!this.warnedOfCut) this.context.observer.ttlCut?.(ttl, before, missing);
    this.warnedOfCut = true;
    return before;
  }

  private async beat(identity: DataIdentity, announcement: Announcement): Promise<boolean> {
    // A server that hangs is not fed without bound. What announces a ttl is bounded by those who ask for locks.
    if (announcement === NOTHING && identity.isBeating) return false;
    identity.isBeating = true;
    const known = await identity.server.beat(announcement);
    identity.isBeating = false;
    if (known !== undefined) identity.knownTtl = known;
    return known !== undefined;
  }

  // Time.

  private get interval(): number {
    if (this.identities.some(({ votes, server }) => !votes && server.isConnected)) return LOOK_INTERVAL;
    return this.isBusy ? CONTACT_INTERVAL / 2 : SAMPLE_INTERVAL;
  }

  private plan(delay: number): void {
    // Masters in memory, which lose nothing, are not added.
    if (this.closed || this.identities.length === 0) return;
    const due = this.now + delay;
    if (this.timer && this.timerDue <= due) return;
    this.timer?.cancel();
    this.timerDue = due;
    this.timer = this.context.clock.schedule(Math.ceil(delay), () => this.tick()).unref();
  }

  private tick(): void {
    this.timer = undefined;
    this.timerDue = Infinity;
    const { now } = this;
    if (this.isEngaged || this.wasEngaged) this.idleSince = now;
    this.isBusy = now - this.idleSince < SAMPLE_INTERVAL;
    this.wasEngaged = false;
    if (this.identities.some(({ votes, server }) => !votes && server.isConnected)) this.look();
    if (this.isEngaged) this.keepContact(now - this.contactedAt);
    for (const identity of this.identities) {
      if (identity.votes && identity.clock.ageAt(now) >= SAMPLE_INTERVAL) void this.beat(identity, NOTHING);
    }
    this.plan(this.interval);
  }

  /** All masters at once: those that hang must not keep the others from hearing of this process. */
  private keepContact(silence: number): void {
    if (silence < CONTACT_INTERVAL / 2) return;
    for (const identity of this.identities) {
      if (identity.server.isConnected && !identity.isBeating) void this.beat(identity, NOTHING);
    }
  }

  private tell(identity: DataIdentity): void {
    const { observer, clock } = this.context;
    const { name } = identity.server;
    if (identity.votes) {
      if (identity.isAnnounced) observer.masterVotesAgain?.(name);
      identity.isAnnounced = false;
      return;
    }
    if (identity.isAnnounced) return;
    const quarantine = identity.quarantineAt(clock.read());
    if (!quarantine) return;
    identity.isAnnounced = true;
    observer.masterQuarantined?.(name, quarantine.reason, quarantine.remaining);
  }

  /** A server that hangs must not keep this process from hearing what the others say. */
  private get patience(): number {
    return Math.min(MOST_PATIENCE, Math.max(LEAST_PATIENCE, TIMEOUTS * this.context.settings.masterTimeout));
  }

  private within<T>(limit: number, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      this.limits++;
      let isOver = false;
      const end = (value: T | undefined): void => {
        if (isOver) return;
        isOver = true;
        this.limits--;
        timer.cancel();
        resolve(value);
      };
      const timer = this.context.clock.schedule(limit, () => end(undefined)).unref();
      promise.then(end, () => end(undefined));
    });
  }
}

/** The history of a server is compared at least this often, in milliseconds. */
export { COMPARISON_INTERVAL };

const NOTHING = Object.freeze({ ttl: 0, lengthens: false, known: 0 });
const UNKNOWN: Judgement = { culprit: 'unknown' };

type Announcement = Parameters<GuardedServer['beat']>[0];
