import {
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  NOT_ASKED,
  type NotificationListener,
  type OperatorMaster,
  type ReleaseRequest,
  type ReplyCallback,
} from './master.interface.js';
import type { UnreachableReply } from '../redlock/server.js';
import { type Clock, elapsedSince, type Instant } from '../redlock/clock.js';
import type { LockObserver } from '../operate/observer.js';
import { TimeLimit } from '../redlock/time-limit.js';
import { Refusal } from './refusal.js';
import { RoundTrip } from './round-trip.js';
import type { MasterStatus } from '../operate/status.js';

// This many unanswered requests make a master suspect; fewer may simply be on their way.
const OVERDUE_REPLIES = 3;
// A silent master gets at most one request in this many milliseconds.
const PROBE_INTERVAL = 1_000;

interface OwedRelease {
  readonly request: ReleaseRequest;
  readonly since: Instant;
  // Milliseconds from `since` after which nothing is left to release.
  readonly life: number;
  // Of a release for which a connection is being opened.
  reply?: ReplyCallback | undefined;
}

// While the master is silent, requests are answered with `NOT_ASKED` at once. From time to time, one also triggers a
// probe, which changes nothing however late it takes effect. Releases that could not be delivered are kept for as long
// as there can be something to release, and are sent when the master answers or connects again, or is closed.
// Protocol 4.7
export class CircuitBreakerMaster implements Master {
  private readonly owed = new Map<string, OwedRelease>();
  private deliveredAt: Instant | undefined;
  private unanswered = 0;
  // Of all requests so far. A connection that can be used anew counts as one.
  answers = 0;
  // Present while it is suspect.
  private watch: TimeLimit | undefined;
  private probedAt: Instant;
  private open = false;
  private excluded: string | undefined;
  readonly roundTrip = new RoundTrip();
  private readonly refusal = new Refusal();
  private isRefused = false;
  // What the master was last reported to refuse although it votes.
  private restriction: string | undefined;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly inner: Master,
    private readonly clock: Clock,
    private readonly timeout: number,
    private readonly observer: LockObserver,
    // For keys for which other processes wait.
    private readonly noteWaiters: (keys: readonly string[]) => void,
  ) {
    this.probedAt = clock.read();
    inner.onReady(() => {
      this.deliveredAt = undefined;
      this.noteReply();
      for (const listener of this.listeners) listener();
    });
  }

  get name(): string {
    return this.inner.name;
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    if (this.excluded !== undefined && request.op !== 'release') {
      reply({ kind: 'unreachable', reason: this.excluded, sent: false });
      return;
    }
    if (!this.open) {
      this.forward(request, reply, undefined);
      return;
    }
    if (request.op === 'release') this.owe(this.owedFor(request));
    reply(NOT_ASKED);
    this.observer.masterAnswered?.(this.name, request.op, NOT_ASKED, 0);
    if (this.probeIsDue()) this.forward({ op: 'inspect', keys: request.keys }, () => undefined, undefined);
  }

  connect(): Promise<void> {
    return this.inner.connect();
  }

  problem(): UnreachableReply | undefined {
    if (this.excluded !== undefined) return { kind: 'unreachable', reason: this.excluded, sent: false };
    return this.inner.problem();
  }

  check(resources: readonly string[]): void {
    this.inner.check?.(resources);
  }

  reopened(): Promise<void> | undefined {
    return this.excluded === undefined ? this.inner.reopened?.() : undefined;
  }

  // It is worth waiting for its answer.
  get isUsable(): boolean {
    return !this.open && this.problem() === undefined && !this.inner.isQuarantined;
  }

  // Even if this master is excluded.
  get isConnected(): boolean {
    return this.inner.problem() === undefined;
  }

  // It leaves requests unanswered.
  get isOpen(): boolean {
    return this.open;
  }

  // For the same server as another master. `undefined` includes it again.
  exclude(reason: string | undefined): void {
    if (reason === this.excluded) return;
    this.excluded = reason;
    if (reason !== undefined) this.observer.masterRefused?.(this.name, reason);
    else this.observer.masterVotesAgain?.(this.name);
  }

  get isQuarantined(): boolean {
    return this.inner.isQuarantined;
  }

  get isExcluded(): boolean {
    return this.excluded !== undefined;
  }

  identity(): MasterIdentity {
    const identity = this.inner.identity();
    return this.excluded === undefined ? identity : { ...identity, fault: this.excluded };
  }

  status(): MasterStatus {
    const { version, fault, quarantine } = this.identity();
    const known = {
      master: this.name,
      ...(version !== undefined && { version }),
    };
    if (fault !== undefined) return { ...known, state: 'refused', reason: fault };
    const problem = this.problem();
    if (problem) return { ...known, state: problem.isPermanent ? 'refused' : 'down', reason: problem.reason };
    if (this.open) return { ...known, state: 'silent', reason: 'it leaves requests unanswered' };
    const refusal = this.refusal.reason;
    if (refusal !== undefined) return { ...known, state: 'refused', reason: refusal };
    if (quarantine) return { ...known, state: 'quarantined', ...quarantine };
    const { restriction } = this.refusal;
    return { ...known, state: 'voting', ...(restriction !== undefined && { reason: restriction }) };
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    this.inner.listen(waiter, listener);
  }

  get operator(): OperatorMaster | undefined {
    return this.open || this.excluded !== undefined ? undefined : this.inner.operator;
  }

  onReady(listener: () => void): void {
    this.listeners.push(listener);
  }

  close(): Promise<void> {
    // A silent master that resumes carries out the requests that were sent to it, and then these.
    this.deliver();
    this.owed.clear();
    this.watch?.cancel();
    return this.inner.close();
  }

  private forward(request: MasterRequest, reply: ReplyCallback, owed: OwedRelease | undefined): void {
    this.unanswered++;
    const isWaiting = 'queue' in request && request.queue !== undefined;
    const isMeasured = this.roundTrip.count(isWaiting) || this.observer.masterAnswered !== undefined;
    const asked = isMeasured ? this.clock.read() : undefined;
    this.inner.ask(request, (answer) => {
      this.unanswered--;
      if (asked) this.measure(request, answer, asked);
      if (answer.kind !== 'unreachable') this.noteReply();
      else if (request.op === 'release') {
        const release = owed ?? this.owedFor(request);
        this.owe(release);
        if (!owed && !answer.sent && this.awaitReopening(release, answer, reply)) return;
      }
      if ('hasWaiters' in answer && answer.hasWaiters) this.noteWaiters(request.keys);
      if (this.refusal.note(request, answer)) this.reportRefusal();
      reply(answer);
    });
    if (this.isSuspect && !this.watch) this.beginWatch();
  }

  private measure({ op }: MasterRequest, answer: MasterReply, asked: Instant): void {
    const took = this.clock.read().monotonic - asked.monotonic;
    if (answer.kind !== 'unreachable') this.roundTrip.note(took);
    this.observer.masterAnswered?.(this.name, op, answer, took);
  }

  private reportRefusal(): void {
    const { observer, name } = this;
    const { reason, restriction } = this.refusal;
    if (this.isRefused !== (reason !== undefined)) {
      this.isRefused = reason !== undefined;
      if (reason !== undefined) observer.masterRefused?.(name, reason);
      else if (!this.isQuarantined) observer.masterVotesAgain?.(name);
    }
    if (restriction === this.restriction) return;
    const before = this.restriction ?? '';
    this.restriction = restriction;
    if (restriction === undefined) observer.masterRiskEnded?.(name, before);
    else observer.masterAtRisk?.(name, restriction);
  }

  private get isSuspect(): boolean {
    return this.unanswered >= OVERDUE_REPLIES && !this.open;
  }

  private beginWatch(): void {
    const { answers, clock, timeout: limit } = this;
    const end = (): void => {
      this.watch = undefined;
      if (!this.isSuspect) return;
      if (this.answers === answers) this.trip();
      else this.beginWatch();
    };
    this.watch = new TimeLimit({ clock, limit, end }).unref();
  }

  private trip(): void {
    this.open = true;
    this.probedAt = this.clock.read();
    this.observer.masterSilent?.(this.name);
  }

  private probeIsDue(): boolean {
    if (elapsedSince(this.clock, this.probedAt) < PROBE_INTERVAL) return false;
    this.probedAt = this.clock.read();
    return true;
  }

  private noteReply(): void {
    this.answers++;
    if (this.open) {
      this.open = false;
      this.deliveredAt = undefined;
      this.observer.masterAnswersAgain?.(this.name);
    }
    if (this.owed.size > 0 && this.deliveryIsDue) this.deliver();
  }

  // A cluster may answer for one key for long, and not for another one: each answer would send all releases again.
  private get deliveryIsDue(): boolean {
    return !this.deliveredAt || elapsedSince(this.clock, this.deliveredAt) >= PROBE_INTERVAL;
  }

  // Earlier requests to a silent master may take effect only when it resumes, and no ttl bounds when that is.
  private owedFor(request: ReleaseRequest): OwedRelease {
    const { ttl } = request;
    return { request, since: this.clock.read(), life: this.open && ttl > 0 ? Infinity : ttl };
  }

  // What the release says may be a loss, of which its holder learns only then.
  // Protocol 7.6
  private awaitReopening(release: OwedRelease, answer: MasterReply, reply: ReplyCallback): boolean {
    const reopened = this.owed.has(release.request.token) ? this.reopened() : undefined;
    if (!reopened) return false;
    release.reply = reply;
    void reopened.then(() => {
      // Unless it has been sent by now.
      release.reply?.(answer);
      release.reply = undefined;
    });
    return true;
  }

  private owe(release: OwedRelease): void {
    for (const [token, { since, life }] of this.owed) {
      if (elapsedSince(this.clock, since) <= life) break;
      this.owed.delete(token);
    }
    if (release.life > 0) this.owed.set(release.request.token, release);
  }

  private deliver(): void {
    this.deliveredAt = this.clock.read();
    const releases = [...this.owed.values()];
    this.owed.clear();
    for (const release of releases) {
      const { request, since, life, reply = () => undefined } = release;
      const age = elapsedSince(this.clock, since);
      if (age > life) continue;
      release.reply = undefined;
      const keepFor = Math.max(0, request.keepFor - Math.floor(age));
      this.forward({ ...request, keepFor }, reply, release);
    }
  }
}
