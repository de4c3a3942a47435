import { describeReply } from '../errors.js';
import {
  type GrantedReply,
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  NOT_ASKED,
  type NotificationListener,
  type OperatorMaster,
  type RefusedReply,
  type ReleaseRequest,
  type ReplyCallback,
  type ShardStatus,
  type UnreachableReply,
} from '../master.interface.js';
import { type Clock, elapsedSince, type Instant } from '../clock.js';
import { askAll, quorumOf } from '../acquire/quorum-call.js';
import type { LockObserver } from '../observer.js';

const WRITING: readonly MasterRequest['op'][] = ['acquire', 'extend', 'probe'];
// Any key would get these errors: no memory, a replica, a failing disk, too few replicas, no login, a busy script.
const CODES: readonly string[] = ['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOAUTH', 'BUSY'];
// A missing permission for a command, and not for one key. The second wording is that of Redis 7.0.
const COMMAND = /\bto run the\b|\bcan't run\b/;

// Whether a master refuses what locks need, from its answers. It is sent requests all the same.
export class Refusal {
  private last: RefusedReply | undefined;
  private lack: { readonly text: string; readonly op?: MasterRequest['op'] } | undefined;

  // `undefined` if nothing is known against it.
  get reason(): string | undefined {
    return this.last && describeReply(this.last);
  }

  // What it refuses although locks can be taken there.
  get restriction(): string | undefined {
    return this.lack?.text;
  }

  // True if the answer may have changed what the master refuses.
  note(request: MasterRequest, answer: MasterReply): boolean {
    if (answer.kind === 'refused') return this.noteRefusal(request.op, answer);
    if (answer.kind !== 'granted' || !(this.last || this.lack || answer.lacks)) return false;
    this.noteGrant(request, answer);
    return true;
  }

  private noteRefusal(op: MasterRequest['op'], answer: RefusedReply): boolean {
    if (concernsMaster(op, answer)) this.last = answer;
    else if (answer.isVital === false) this.lack = { text: describeReply(answer) };
    else if (isForbidden(answer)) this.lack = { text: describeReply(answer), op };
    else return false;
    return true;
  }

  private noteGrant(request: MasterRequest, { lacks }: GrantedReply): void {
    if (this.last && isDisproof(request, this.last)) this.last = undefined;
    if (lacks !== undefined) this.lack = lacks === '' ? undefined : { text: lacks };
    // What nothing was found out about is permitted once the same request is granted.
    else if (this.lack?.op === request.op) this.lack = undefined;
  }
}

// An extension needs no memory, and a server does not check its memory for an acquisition that follows a release in one
// script. A shared lock needs other permissions than an exclusive one. A probe is always checked.
function isDisproof(request: MasterRequest, { code }: RefusedReply): boolean {
  if (request.op === 'probe') return true;
  return request.op === 'acquire' && code !== 'OOM' && !(code === 'NOPERM' && request.sharing);
}

// An extension that is forbidden says nothing about acquisitions.
function concernsMaster(op: MasterRequest['op'], answer: RefusedReply): boolean {
  if (answer.isVital !== undefined) return answer.isVital;
  if (!WRITING.includes(op)) return false;
  return CODES.includes(answer.code) || (op !== 'extend' && isForbidden(answer));
}

function isForbidden({ code, reason }: RefusedReply): boolean {
  return code === 'NOPERM' && COMMAND.test(reason);
}

interface RoundTrip {
  readonly master: string;
  // Milliseconds.
  readonly fastest: number;
}

// Only the fastest of so many answers shows the network: others may have waited for this process or the server.
const ANSWERS = 3;
// In milliseconds.
const ANSWER_WITHIN = 5_000;
// A time limit this many times as long as the fastest answer leaves room for slower ones.
const ROOM = 3;
const STEP = 50;

// Masters that answer within `enough` milliseconds are asked once, so that this costs next to nothing where the network
// is fast. No lock uses `key`.
export async function measureRoundTrips(
  masters: readonly Master[],
  { key, clock, enough }: { readonly key: string; readonly clock: Clock; readonly enough: number },
): Promise<readonly RoundTrip[]> {
  const trips = new Map<string, number>();
  for (let i = 0; i < ANSWERS; i++) {
    const open = masters.filter((master) => !master.problem() && (trips.get(master.name) ?? Infinity) >= enough);
    if (open.length === 0) break;
    const asked = clock.read().monotonic;
    await askAll({
      masters: open,
      request: { op: 'inspect', keys: [key] },
      clock,
      timeout: ANSWER_WITHIN,
      judge: (answer, { name }) => {
        const taken = clock.read().monotonic - asked;
        const hasAnswered = answer.kind !== 'unreachable' && answer.kind !== 'timeout';
        if (hasAnswered) trips.set(name, Math.min(taken, trips.get(name) ?? Infinity));
        return answer;
      },
    });
  }
  return [...trips].map(([master, fastest]) => ({ master, fastest }));
}

export function warningOfRoundTrips(
  trips: readonly RoundTrip[],
  masterTimeout: number,
  masters: number,
): string | undefined {
  const slow = trips.filter(({ fastest }) => fastest >= masterTimeout);
  if (slow.length === 0) return undefined;
  const each = slow.map(({ master, fastest }) => `${master} in ${Math.ceil(fastest)} ms`).join(', ');
  const effect = masters - slow.length < quorumOf(masters) ? 'no lock can be taken' : 'their votes do not count';
  const enough = enoughFor(Math.max(...slow.map(({ fastest }) => fastest)));
  return `masterTimeout (${masterTimeout} ms) is too short: ${each} at the fastest, so ${effect}; set masterTimeout to '${enough}ms' or more`;
}

// In milliseconds.
export function enoughFor(fastest: number): number {
  return Math.ceil((ROOM * fastest) / STEP) * STEP;
}

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

  // By its last answers. It is asked all the same.
  get refusalReason(): string | undefined {
    return this.inner.shards ? this.inner.refusalReason : this.refusal.reason;
  }

  // What it refuses although locks can be taken there.
  get restrictionReason(): string | undefined {
    return this.refusal.restriction;
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

  shards(): readonly ShardStatus[] | undefined {
    return this.inner.shards?.();
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

  private reportRefusal(): void {
    const { refusalReason: reason, restrictionReason: restriction, observer, name } = this;
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
