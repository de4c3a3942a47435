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
  type UnreachableReply,
} from '../master.interface.js';
import { type Clock, elapsedSince, type Instant } from '../clock.js';
import type { LockObserver } from '../observer.js';
import { Refusal } from './refusal.js';
import type { MasterStatus } from './status.js';

// This many unanswered requests make a master suspect; fewer may simply be on their way.
const OVERDUE_REPLIES = 3;
// A silent master gets at most one request in this many milliseconds.
const PROBE_INTERVAL = 1_000;
// After this many milliseconds of silence, the connection itself is suspect: the peer may have vanished unnoticed.
const RECONNECT_AFTER = 10_000;

interface OwedRelease {
  readonly request: ReleaseRequest;
  readonly since: Instant;
  // Milliseconds from `since` after which nothing is left to release.
  readonly life: number;
}

// While the master is silent, requests are answered with `NOT_ASKED` at once. From time to time, one also triggers a
// probe, which changes nothing however late it takes effect. Releases that could not be delivered are kept for as long
// as there can be something to release, and are sent when the master answers or connects again, or is closed.
// Protocol 4.7
export class CircuitBreakerMaster implements Master {
  private readonly owed = new Map<string, OwedRelease>();
  private deliveredAt: Instant | undefined;
  private unanswered = 0;
  // When the first request after the last answer was sent; `undefined` if there was none.
  private waitingSince: Instant | undefined;
  private probedAt: Instant;
  private open = false;
  private judging = false;
  private excluded: string | undefined;
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

  reconnect(): void {
    this.inner.reconnect();
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
    const { version, fault, risk, quarantine } = this.identity();
    const shards = this.inner.shards?.();
    const known = {
      master: this.name,
      ...(version !== undefined && { version }),
      ...(risk !== undefined && { risk }),
      ...(shards && { shards }),
    };
    if (fault !== undefined) return { ...known, state: 'refused', reason: fault };
    const problem = this.problem();
    if (problem) return { ...known, state: problem.isPermanent ? 'refused' : 'down', reason: problem.reason };
    if (this.open) return { ...known, state: 'silent', reason: 'it leaves requests unanswered' };
    const refusal = this.refusalReason;
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

  noteStandstill(): void {
    this.inner.noteStandstill?.();
  }

  onReady(listener: () => void): void {
    this.listeners.push(listener);
  }

  close(): Promise<void> {
    // A silent master that resumes carries out the requests that were sent to it, and then these.
    this.deliver();
    this.owed.clear();
    return this.inner.close();
  }

  private forward(request: MasterRequest, reply: ReplyCallback, owed: OwedRelease | undefined): void {
    this.waitingSince ??= this.clock.read();
    this.unanswered++;
    const asked = this.observer.masterAnswered && this.clock.read();
    this.inner.ask(request, (answer) => {
      this.unanswered--;
      if (asked) this.observe(request, answer, asked);
      if (answer.kind !== 'unreachable') this.noteReply();
      else if (request.op === 'release') this.owe(owed ?? this.owedFor(request));
      if (answer.kind === 'granted' && answer.hasWaiters) this.noteWaiters(request.keys);
      if (this.noteRefusal(request, answer)) this.reportRefusal();
      reply(answer);
    });
    if (this.unanswered >= OVERDUE_REPLIES && !this.open && !this.judging) this.judge();
  }

  private observe({ op }: MasterRequest, answer: MasterReply, asked: Instant): void {
    this.observer.masterAnswered?.(this.name, op, answer, this.clock.read().monotonic - asked.monotonic);
  }

  // True if the answer may have changed what the master refuses.
  private noteRefusal(request: MasterRequest, answer: MasterReply): boolean {
    if (!this.inner.shards) return this.refusal.note(request, answer);
    return this.isRefused !== (this.inner.refusalReason !== undefined);
  }

  // By its last answers. It is asked all the same.
  get refusalReason(): string | undefined {
    return this.inner.shards ? this.inner.refusalReason : this.refusal.reason;
  }

  private reportRefusal(): void {
    const { refusalReason: reason, observer, name } = this;
    const { restriction } = this.refusal;
    if (this.isRefused !== (reason !== undefined)) {
      this.isRefused = reason !== undefined;
      if (reason === undefined) observer.masterVotesAgain?.(name);
      else observer.masterRefused?.(name, reason);
    }
    if (restriction === this.restriction) return;
    const before = this.restriction ?? '';
    this.restriction = restriction;
    if (restriction === undefined) observer.masterRiskEnded?.(name, before);
    else observer.masterAtRisk?.(name, restriction);
  }

  private get isOverdue(): boolean {
    if (this.unanswered < OVERDUE_REPLIES || !this.waitingSince) return false;
    // By the monotonic clock: no answer can arrive while the machine is suspended.
    return this.clock.read().monotonic - this.waitingSince.monotonic > this.timeout;
  }

  // At most once per turn of the event loop. Answers may have arrived while this process was busy, so it reads its
  // input before the verdict.
  private judge(): void {
    this.judging = true;
    const acquit = (): void => {
      this.judging = false;
    };
    const judge = (): void => {
      acquit();
      if (this.isOverdue && this.inner.isSilent !== false) this.trip();
    };
    this.clock.afterTurn(() => (this.isOverdue ? this.clock.afterInput(judge) : acquit()));
  }

  private trip(): void {
    this.open = true;
    this.probedAt = this.clock.read();
    this.observer.masterSilent?.(this.name);
  }

  private probeIsDue(): boolean {
    if (elapsedSince(this.clock, this.probedAt) < PROBE_INTERVAL) return false;
    this.probedAt = this.clock.read();
    if (this.waitingSince && elapsedSince(this.clock, this.waitingSince) > RECONNECT_AFTER) {
      this.waitingSince = this.probedAt;
      this.inner.reconnect();
    }
    return true;
  }

  private noteReply(): void {
    this.waitingSince = undefined;
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
    return { request, since: this.clock.read(), life: this.open ? Infinity : request.ttl };
  }

  private owe(release: OwedRelease): void {
    for (const [token, { since, life }] of this.owed) {
      if (elapsedSince(this.clock, since) <= life) break;
      this.owed.delete(token);
    }
    this.owed.set(release.request.token, release);
  }

  private deliver(): void {
    this.deliveredAt = this.clock.read();
    const releases = [...this.owed.values()];
    this.owed.clear();
    for (const release of releases) {
      const { request, since, life } = release;
      const age = elapsedSince(this.clock, since);
      if (age > life) continue;
      const keepFor = Math.max(0, request.keepFor - Math.floor(age));
      this.forward({ ...request, keepFor }, () => undefined, release);
    }
  }
}
