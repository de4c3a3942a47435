import type { Instant, Timer } from '../../core/clock.js';
import type { ServerIdentity } from '../replies.js';
import { ServerRecord, type GuardedServer } from './server-record.js';
import { distinct, GuardGroup, idOf, type Reports, type RestartGuardContext } from './guard-group.js';
import { FIRST } from './marker.js';
import { MarkerWriter } from './marker-writer.js';
import { NewMasters } from './new-masters.js';
import { StepJudge } from './step-judge.js';
import { NOTHING, TtlAnnouncements } from './ttl-announcements.js';
import { Keyspace } from '../../core/keyspace.js';
import type { Witness } from '../../core/witness.interface.js';

interface Parts {
  readonly group: GuardGroup;
  readonly writer: MarkerWriter;
  readonly steps: StepJudge;
  readonly newMasters: NewMasters;
}

export class GuardRounds {
  constructor(private readonly parts: Parts) {}

  // Resolves with the milliseconds after which the masters have to be read again; `undefined` when they need not be.
  async actOn(all: Reports, asked: Instant): Promise<number | undefined> {
    const { group, writer } = this.parts;
    const reports = distinct(all);
    const wasUnknown = new Set(group.records.filter(({ state }) => state === 'unknown'));
    // All are recognized in this turn: later, another connection may have shown something newer.
    const recognized = [...all].map(([record, report]) => this.recognize(record, report, asked));
    let again = (await Promise.all(recognized)).includes(true);
    if (group.trusted < group.quorum) group.voidAttempts();
    for (const [record, report] of reports) {
      if (record.state !== 'unknown') continue;
      // Protocol 8.3
      // The reports of the others count only if they were read after it was known that this one's data is unknown.
      const areRecent = wasUnknown.has(record);
      if (!areRecent || (await writer.quarantine(record, report, reports, asked))) again = true;
    }
    const attended = [...all].map(([record, report]) => writer.maintain(record, report, reports, asked));
    if ((await Promise.all(attended)).includes(true)) again = true;
    const delay = await this.greet(reports, asked);
    return again ? 0 : delay;
  }

  // Resolves with the milliseconds until new masters vote, or are marked as the first ones.
  private async greet(reports: Reports, asked: Instant): Promise<number | undefined> {
    const { newMasters, writer } = this.parts;
    const first = newMasters.untilFirst(reports, asked);
    const vote = newMasters.untilVote(reports, asked);
    const changes = [...reports].map(async ([record, report]) => {
      const begins = vote === 0 && record.isYoungAt(report);
      const change = { ...(first === 0 && { first: FIRST }), ...(begins && { from: report.time }) };
      if (first === 0 || begins) await writer.change(record, report, change);
    });
    await Promise.all(changes);
    return first === undefined || vote === undefined ? (first ?? vote) : Math.min(first, vote);
  }

  accept(record: ServerRecord, report: ServerIdentity, asked: Instant): void {
    const { group } = this.parts;
    const received = group.context.clock.read();
    if (record.relationOf(report) !== 'known') {
      record.noteOther(report, received);
      return;
    }
    if (record.isSuspect || record.isOutdated(asked) || record.owesAccusation(report)) return;
    const { isEngaged } = group;
    const isFirstSight = report.marker?.nonce !== record.nonce;
    const others = group.records.filter((other) => other !== record);
    const isTwin = others.some(
      (other) => other.nonce === report.marker?.nonce && idOf(other.marker) === idOf(report.marker),
    );
    if (report.marker && !isTwin) record.noteGeneration(report.marker, others);
    const voted = record.votes;
    // The data was replaced while this process held a lock: a veto makes the lock known to the others.
    if (isFirstSight) record.markerChangedWhileHolding = isEngaged && record.nonce !== '';
    record.accept(report, asked, received);
    // A lock from before may have a ttl that was never announced to this marker.
    if (isFirstSight) record.mustExtendQuarantine = isEngaged && !record.votes;
    // The accusation gives the reason.
    if (record.step === undefined) group.announce(record);
    group.announceRefusal(record);
    // Its data may be that of another master by now.
    if ((!voted || isFirstSight) && record.votes) record.server.onVoting();
  }

  // Resolves with whether the masters have to be read again.
  private async recognize(record: ServerRecord, report: ServerIdentity, asked: Instant): Promise<boolean> {
    const { group, writer, steps } = this.parts;
    // A server that is being judged is read again afterwards.
    if (record.isSuspect) return false;
    const relation = record.relationOf(report);
    if (relation === 'unknown') {
      const { context } = group;
      record.noteUnknown(report, context.clock.read(), group.quarantineOf(record, context.settings.ttl));
      return false;
    }
    if (relation === 'known') this.accept(record, report, asked);
    if (record.isOf(report)) steps.sampled(record, asked, report.time);
    if (relation === 'renamed') return writer.change(record, report, { run: report.run, replid: report.replid });
    return record.step !== undefined && writer.quarantineForClockJump(record, report, record.step);
  }
}

// How often a process that holds a lock completes a contact with some master, at least, in milliseconds.
const CONTACT_INTERVAL = 1_000;
// How often the masters are read while a marker may soon need a veto, an end or a judgement, in milliseconds.
const READ_INTERVAL = 250;
// The same during a quarantine that only has to pass, in milliseconds: an operator may lift it.
const CALM_READ_INTERVAL = 1_000;
// How often an idle process samples the clocks, in milliseconds.
const SAMPLE_INTERVAL = 10_000;
// A connection is replaced if a reading takes longer than this, in milliseconds.
const SILENT_AFTER = 10_000;
// How often another client may write a marker between a reading and a writing of this one.
const MAX_RACES = 10;

// `revision` is that of what was known when the report was requested.
interface Reading {
  readonly report: ServerIdentity;
  readonly revision: number;
}

// Keeps masters from voting that may have lost what they acknowledged. The age of a server does not matter. What
// matters is whether its data acknowledged the locks: a marker in the data carries the run and the history that it
// belongs to, and a nonce. Where they do not fit, the master is quarantined until every lock from before has ended, for
// all clients.
// @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ on delayed restarts
export class RestartGuard implements Witness {
  readonly markerName: string;
  private readonly group: GuardGroup;
  readonly ttls: TtlAnnouncements;
  private readonly steps: StepJudge;
  readonly newMasters: NewMasters;
  private readonly rounds: GuardRounds;
  private wasEngaged = false;
  private isBusy = false;
  private idleSince = -Infinity;
  private timer: Timer | undefined;
  private timerDue = Infinity;
  private reading: Promise<void> | undefined;
  private readAgain = false;
  // A reading is planned, whichever masters vote.
  private isExpectant = false;
  private closed = false;

  constructor(private readonly context: RestartGuardContext) {
    this.markerName = new Keyspace(context.settings.keyPrefix).marker;
    this.group = new GuardGroup(context);
    this.ttls = new TtlAnnouncements(this.group);
    this.steps = new StepJudge(this.group, this.ttls, () => this.readMasters());
    this.newMasters = new NewMasters(this.group);
    const writer = new MarkerWriter(this.group, this.ttls);
    const { group, steps, newMasters } = this;
    this.rounds = new GuardRounds({ group, writer, steps, newMasters });
  }

  // All servers are added before the first is connected.
  add(server: GuardedServer): ServerRecord {
    const record = new ServerRecord(server, () => Math.min(this.ttls.smallestTtl, this.context.settings.maxTtl));
    this.group.records.push(record);
    return record;
  }

  addCluster(cluster: GuardGroup['clusters'][number]): void {
    this.group.clusters.push(cluster);
  }

  // Masters in memory cannot restart without their process.
  get isNeeded(): boolean {
    return this.group.records.length > 0;
  }

  get pendingTimers(): number {
    return this.group.pendingAnswers + (this.timer === undefined ? 0 : 1);
  }

  beginAttempt(): number | undefined {
    if (this.group.voting < this.group.quorum) return undefined;
    const wasEngaged = this.group.isEngaged;
    const attempt = this.group.beginAttempt();
    if (!wasEngaged) this.engage();
    return attempt;
  }

  confirm(attempt: number): boolean {
    return this.group.confirm(attempt);
  }

  abandon(attempt: number): void {
    this.group.abandon(attempt);
  }

  disengage(keptFor = 0): void {
    this.group.disengage(keptFor);
  }

  announceTtl(ttl: number, now?: Instant): number | Promise<number> {
    return this.ttls.announceTtl(ttl, now);
  }

  // Over a new connection or after a doubt.
  meet(record: ServerRecord, report: ServerIdentity, asked: Instant): void {
    this.ttls.repeat();
    this.rounds.accept(record, report, asked);
    if (record.isOf(report)) {
      const isFirst = !record.clock.hasSamples;
      this.steps.sampled(record, asked, report.time);
      // Its connection is not open yet.
      if (isFirst) this.context.clock.afterInput(() => this.sampleAll());
    }
    const { votes, hasLostData, markerChangedWhileHolding } = record;
    const owesVeto = markerChangedWhileHolding ? !report.marker?.isVetoed : record.isUnvetoed && this.group.isEngaged;
    if (!votes || owesVeto || (hasLostData && report.marker?.wasEmpty)) this.readMasters();
    else this.plan(this.interval);
  }

  // Resolves when the last reading has had its consequences.
  decided(): Promise<void> {
    return this.reading ?? Promise.resolve();
  }

  // Returns whether what the server granted with this reading of its clock, in milliseconds, may count.
  sampled(record: ServerRecord, sent: Instant, time: number, received?: Instant): boolean {
    return this.steps.sampled(record, sent, time, received);
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private engage(): void {
    this.wasEngaged = true;
    this.newMasters.interrupt();
    if (!this.isBusy) {
      this.isBusy = true;
      this.plan(CONTACT_INTERVAL / 2);
    }
    // New masters must not vote early as long as this process holds a lock.
    if (this.group.owesVeto) this.readMasters();
  }

  private readMasters(): void {
    this.readAgain = true;
    if (this.reading || this.closed) return;
    this.reading = this.readWhileNeeded().finally(() => {
      this.reading = undefined;
      if (!this.closed) this.plan(this.interval);
    });
  }

  private async readWhileNeeded(): Promise<void> {
    for (let round = 0; this.readAgain && round < MAX_RACES && !this.closed; round++) {
      this.readAgain = false;
      if (await this.readMastersOnce()) this.readAgain = true;
    }
  }

  private async readMastersOnce(): Promise<boolean> {
    const asked = this.context.clock.read();
    const readings = await this.readAll();
    if (this.closed) return false;
    // While one server was slow to answer, another may have reported something new over another connection.
    const current = [...readings].filter(([record, { revision }]) => revision === record.revision);
    const reports: Reports = new Map(current.map(([record, { report }]) => [record, report]));
    const delay = await this.rounds.actOn(reports, asked);
    this.isExpectant = delay !== undefined;
    if (delay !== undefined && delay > 0) this.plan(delay);
    return delay === 0 || reports.size < readings.size;
  }

  private async readAll(): Promise<ReadonlyMap<ServerRecord, Reading>> {
    const { group } = this;
    const reports = new Map<ServerRecord, Reading>();
    await Promise.all(
      group.records.map(async (record) => {
        // A server that hangs costs the first of several rounds its time limit, and no other: a veto takes three rounds.
        const { reading, revision } = record;
        if (reading.isUnderWay) {
          // Nothing else is sent to a quarantined master: only this shows a connection over which nothing arrives.
          reading.reconnectAfter(SILENT_AFTER, group.now);
          return;
        }
        reading.begin(group.now);
        const reported = record.server.report().finally(() => reading.end());
        const report = await group.within(group.patience, reported);
        if (!report) return;
        record.contactedAt = group.now;
        const isCurrent = revision === record.revision;
        // Until the others have answered, the address may lead back: what was here is not forgotten.
        const isUnknown = record.relationOf(report) === 'unknown';
        if (isCurrent && isUnknown) record.noteOther(report, this.context.clock.read());
        reports.set(record, { report, revision: isCurrent ? record.revision : revision });
      }),
    );
    return reports;
  }

  // Too few masters have answered a holder for a second: new ones may not know of its lock, and connections may be
  // half-open. They need not have broken at the same time.
  private replaceSilent(): void {
    const { now, records, isEngaged, quorum } = this.group;
    if (this.closed || !isEngaged) return;
    const answering = records.filter(
      ({ votes, server, heartbeat }) => votes && server.isConnected && heartbeat.ageAt(now) < CONTACT_INTERVAL,
    );
    if (answering.length >= quorum) return;
    for (const { heartbeat } of records) heartbeat.reconnectAfter(CONTACT_INTERVAL, now);
  }

  private get hasQuarantined(): boolean {
    return this.group.records.some(({ votes, server }) => !votes && server.isConnected);
  }

  private get interval(): number {
    if (this.hasQuarantined) return this.isCalm ? Math.min(CALM_READ_INTERVAL, this.nextEnd) : READ_INTERVAL;
    return this.isBusy ? CONTACT_INTERVAL / 2 : SAMPLE_INTERVAL;
  }

  private get isCalm(): boolean {
    const { isEngaged, records } = this.group;
    return !isEngaged && records.every(({ isSuspect, state }) => !isSuspect && state !== 'unknown');
  }

  // In milliseconds.
  private get nextEnd(): number {
    const now = this.context.clock.read();
    const remaining = this.group.records.map((record) => record.quarantineAt(now)?.remaining ?? Infinity);
    return Math.max(READ_INTERVAL, Math.min(...remaining));
  }

  private plan(delay: number): void {
    if (this.closed || !this.isNeeded) return;
    const due = this.group.now + delay;
    if (this.timer && this.timerDue <= due) return;
    this.timer?.cancel();
    this.timerDue = due;
    this.timer = this.context.clock.schedule(Math.ceil(delay), () => this.tick()).unref();
  }

  private tick(): void {
    const { now, isEngaged, records } = this.group;
    this.timer = undefined;
    if (isEngaged || this.wasEngaged) this.idleSince = now;
    this.isBusy = now - this.idleSince < SAMPLE_INTERVAL;
    this.wasEngaged = false;
    if (this.hasQuarantined || this.isExpectant || (isEngaged && this.group.owesVeto)) this.readMasters();
    // Protocol 8.5
    if (isEngaged) this.keepContact(now);
    for (const record of records) {
      if (record.votes && record.clock.ageAt(now) >= SAMPLE_INTERVAL) void this.ttls.beat(record);
    }
    this.plan(this.interval);
  }

  // A step is judged by older samples of the others: each master gets one more, even if another one is under way.
  private sampleAll(): void {
    if (this.closed) return;
    for (const record of this.group.records) {
      if (record.votes && record.server.isConnected) void this.ttls.beat(record, { ...NOTHING });
    }
  }

  // Each master that has answered nothing lately.
  private keepContact(now: number): void {
    const { records } = this.group;
    // Answers may have arrived while this process stood still.
    if (records.some(({ heartbeat }) => heartbeat.ageAt(now) >= CONTACT_INTERVAL)) {
      this.context.clock.afterInput(() => this.replaceSilent());
    }
    for (const record of records) {
      const { server, heartbeat, contactedAt } = record;
      if (now - contactedAt < CONTACT_INTERVAL / 2) continue;
      if (server.isConnected && !heartbeat.isUnderWay) void this.ttls.beat(record);
    }
  }
}
