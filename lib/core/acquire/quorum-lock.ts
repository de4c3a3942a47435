import {
  type AcquireRequest,
  type ExtendRequest,
  type Master,
  type MasterReply,
  mayHaveReached,
  type PickRequest,
  type QueueTicket,
  type ReplyCallback,
  TIMED_OUT,
} from '../master.interface.js';
import type { MasterReport } from '../errors.js';
import { QuorumCall, type SendRequest } from './quorum-call.js';
import { Condition, type Clock, elapsedBetween, type Instant } from '../clock.js';
import type { KeyNames, Keyspace } from '../keyspace.js';
import type { Extension, LeasedKeys, StateAccess } from './leased-keys.js';
import type { PermitChoice } from './permits.js';
import { driftOf, masterTimeoutFor, type Settings, ttlFor } from '../settings/settings.js';
import { hasLead, shiftWall } from '../wall-clock.js';
import type { Witness } from '../witness.interface.js';
import { TokenDraw } from '../fencing.js';

// How often a master that refuses is asked again after the home master has granted.
const REPEATS = 2;

// The requests for a key that the home master has reserved for this process: to all masters at once. The previous
// holder's release may still be on its way to some of them. A master that refuses is therefore asked again once the
// home master has granted, with the same token and without a delay.
export class HandOffReservation {
  private answered: MasterReply | undefined;
  // What to do with each refusal of another master, once the home master has answered.
  private readonly refused: (() => void)[] = [];

  constructor(
    private readonly home: Master,
    private readonly toHome: AcquireRequest,
    private readonly elsewhere: AcquireRequest,
  ) {}

  ask(master: Master, reply: ReplyCallback): void {
    if (master !== this.home) {
      this.askUpTo(REPEATS, master, reply);
      return;
    }
    master.ask(this.toHome, (answer) => {
      this.answered = answer;
      reply(answer);
      for (const goOn of this.refused.splice(0)) goOn();
    });
  }

  private askUpTo(repeats: number, master: Master, reply: ReplyCallback): void {
    master.ask(this.elsewhere, (answer) => {
      const goOn = (): void => {
        // A withdrawn request has been followed by its release: a repetition would arrive after that.
        // Protocol 5.6
        const isWorthIt = this.answered?.kind === 'granted' && repeats > 0 && !this.elsewhere.withdrawn;
        if (isWorthIt) this.askUpTo(repeats - 1, master, reply);
        else reply(answer);
      };
      if (answer.kind !== 'held') reply(answer);
      else if (this.answered) goOn();
      else this.refused.push(goOn);
    });
  }
}

// What each master replied last to the extensions of one lock.
export class ExtensionReplies {
  private earlier: readonly MasterReport[] = [];
  private current: Pick<QuorumCall, 'report' | 'isOpen'> | undefined;

  // Where an extension may have set keys again.
  private readonly renewed = new Set<string>();

  begin(quorumCall: Pick<QuorumCall, 'report' | 'isOpen'>): void {
    this.earlier = this.last;
    if (this.current) for (const name of renewedIn(this.current.report)) this.renewed.add(name);
    this.current = quorumCall;
  }

  // Where an extension may have set keys again.
  get mayBeRenewed(): ReadonlySet<string> {
    return new Set([...this.renewed, ...renewedIn(this.current?.report ?? [])]);
  }

  // A master that was not waited for has its reply to an earlier extension here, and so has one that refused it and has
  // not answered the one under way: the validity may end soon after that was sent.
  get last(): readonly MasterReport[] {
    if (!this.current) return this.earlier;
    const { report, isOpen } = this.current;
    return report.map(({ master, answer }, index) => {
      const earlier = this.earlier[index]?.answer;
      return { master, answer: answer ?? (isOpen && earlier?.kind !== 'refused' ? TIMED_OUT : earlier) };
    });
  }
}

function renewedIn(report: readonly MasterReport[]): readonly string[] {
  return report.flatMap(({ master, answer }) => (hasKept(answer) ? [] : [master]));
}

// The extension has set no key again, by this answer.
function hasKept(answer: MasterReply | undefined): boolean {
  if (answer?.kind === 'granted') return answer.healed !== true;
  return answer?.kind === 'held' || !mayHaveReached(answer);
}

export class PendingReleases {
  private pending = 0;
  private readonly none = new Condition(() => this.pending === 0);

  begin(): void {
    this.pending++;
  }

  end(): void {
    this.pending--;
    this.none.check();
  }

  settled(): Promise<void> {
    return this.none.met();
  }
}

const NEVER: Instant = Object.freeze({ monotonic: 0, wall: 0 });
const NONE: readonly Master[] = Object.freeze([]);
// In place of the grant of a master that lacked the keys in between.
const GONE: MasterReply = Object.freeze({ kind: 'refused', code: 'GONE', reason: 'it did not have the lock any more' });

export interface QuorumLockContext {
  readonly masters: readonly Master[];
  readonly keyspace: Keyspace;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly witness: Witness;
  readonly releases: PendingReleases;
  // Milliseconds for which the clocks of this process have stood still so far.
  readonly standstill: { readonly total: number };
}

interface QuorumLockOptions {
  readonly resources: readonly string[];
  // Absent for a lock.
  readonly permit?: KeyNames | undefined;
  readonly isShared: boolean;
  readonly token: string;
  // Where other processes wait for the keys.
  readonly home?: Master | undefined;
}

interface ValidityStart {
  // Read before the first request is sent and after all waiting.
  readonly since: Instant;
  // For how long the clocks of this process had stood still by then, in milliseconds.
  readonly stoodStill: number;
}

export interface AcquireAttempt extends ValidityStart {
  // Milliseconds.
  readonly ttl: number;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  // Milliseconds since the acquisition began.
  readonly waited: number;
  // The names of `resources`, if they are at hand.
  readonly names?: KeyNames | undefined;
}

interface HomeQueue {
  readonly home: Master;
  readonly ticket: QueueTicket;
}

interface SlotChoice {
  readonly permits: Pick<PermitChoice, 'all' | 'order' | 'namesOf'>;
  readonly home: Master;
  // Absent for an acquisition that does not wait.
  readonly ticket: QueueTicket | undefined;
}

interface Round {
  readonly masters: readonly Master[];
  readonly request: AcquireRequest | ExtendRequest | PickRequest;
  readonly timeout: number;
  // From when the validity counts if a quorum grants. Absent in the round to the home master alone, which decides
  // nothing, and in extensions, which `extend` counts itself.
  readonly countsFrom?: ValidityStart;
  // Where `master.ask(request)` is not enough.
  readonly send?: SendRequest | undefined;
  // If it differs from `request`.
  readonly requestToHome?: AcquireRequest | undefined;
  readonly now?: Instant;
}

// A round that some masters have not answered yet.
interface SentRound extends Pick<Round, 'request' | 'requestToHome'> {
  quorumCall: QuorumCall | undefined;
}

// An attempt becomes a lock when it is granted and counts, unless it is given up before.
type Phase = 'attempt' | 'given up' | 'lock' | 'released';

// The keys of one token on the masters: the three rounds of the algorithm (acquire, extend, release), and how long
// their result can be relied on.
// @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
export class QuorumLock implements LeasedKeys {
  private since: Instant = NEVER;
  // Milliseconds from `since`.
  private validity = 0;
  // How long the clocks had stood still when the validity was counted. What is added later shortens it.
  private stoodStill = 0;
  // Masters on which there may be something to release.
  private reached: readonly Master[] = NONE;
  // The last round, until every master has answered it.
  private sent: SentRound | undefined;
  private phase: Phase = 'attempt';
  // Identifies the attempt to the witness; `undefined` if it does not count or is over.
  private attempt: number | undefined;
  // Longest ttl in milliseconds that was requested: until it ends, there may be something to release.
  private life = 0;
  // Present once the fencing token has been requested.
  private fencing: TokenDraw | undefined;
  // Present from an extension until one succeeds.
  private replies: ExtensionReplies | undefined;

  private readonly resources: readonly string[];
  // Of all permits until the home master has selected one; `undefined` for a lock.
  private permit: KeyNames | undefined;
  private readonly isShared: boolean;
  private readonly token: string;
  private readonly home: Master | undefined;

  constructor(
    private readonly context: QuorumLockContext,
    { resources, permit, isShared, token, home }: QuorumLockOptions,
  ) {
    this.resources = resources;
    this.permit = permit;
    this.isShared = isShared;
    this.token = token;
    this.home = home;
  }

  get remaining(): number {
    return this.remainingAt(this.context.clock.read());
  }

  remainingAt(now: Instant): number {
    return this.phase === 'released' ? 0 : this.validity - elapsedBetween(this.validSince, now); // @mutant elapsed-ignored
  }

  // As if the monotonic clock had missed nothing since the start of the round.
  get validSince(): Instant {
    const missed = this.context.standstill.total - this.stoodStill; // @mutant standstill-not-subtracted
    return missed === 0 ? this.since : { monotonic: this.since.monotonic - missed, wall: this.since.wall };
  }

  get lastReplies(): readonly MasterReport[] {
    return this.replies?.last ?? [];
  }

  get slot(): number | undefined {
    return this.permit?.slot;
  }

  get stateAccess(): StateAccess | undefined {
    const { token, names } = this;
    const { masters, settings } = this.context;
    const { keys, state } = names;
    const [key] = keys;
    if (key === undefined || state === undefined || this.isShared) return undefined;
    return { masters, key, entry: state, token, masterTimeout: settings.masterTimeout };
  }

  // It has succeeded if `remaining` is positive afterwards.
  acquire(attempt: AcquireAttempt): Promise<QuorumCall> {
    const { timeout } = attempt;
    const { masters } = this.context;
    return this.runRound({
      masters,
      request: this.acquisition(attempt),
      timeout,
      countsFrom: attempt,
      now: attempt.since,
    });
  }

  // The home master first, and the others only after it has granted: only one of several concurrent attempts passes it.
  async acquireThrough(attempt: AcquireAttempt, { home, ticket }: HomeQueue): Promise<QuorumCall> {
    const { timeout } = attempt;
    const first = await this.runRound({ masters: [home], request: this.acquisition(attempt, ticket), timeout });
    return this.acquireAfter(first, home, attempt);
  }

  // For the permit that the home master finds free.
  async acquireOneOf(attempt: AcquireAttempt, { permits, home, ticket }: SlotChoice): Promise<QuorumCall> {
    const { ttl, timeout } = attempt;
    const { order } = permits;
    // Until one is taken, the key to release is not known.
    this.permit = permits.all;
    // Protocol 11.10
    const request: PickRequest = { op: 'pick', keys: order, token: this.token, ttl, withdrawn: false, queue: ticket };
    const first = await this.runRound({ masters: [home], request, timeout });
    const [answer] = first.answered;
    const picked = answer?.kind === 'granted' ? order[answer.picked ?? -1] : undefined;
    if (picked !== undefined) this.permit = permits.namesOf(picked);
    return this.acquireAfter(first, home, attempt);
  }

  // For a key that the home master has just reserved for this process: the others need not wait for its answer.
  acquireReserved(attempt: AcquireAttempt, { home, ticket }: HomeQueue): Promise<QuorumCall> {
    const { timeout } = attempt;
    const requestToHome = this.acquisition(attempt, ticket);
    const request = this.acquisition(attempt);
    // Protocol 5.6
    const reservation = new HandOffReservation(home, requestToHome, request);
    // The home master first: this gives the previous holder's release a little more time to reach the others.
    const masters = [home, ...this.context.masters.filter((master) => master !== home)];
    const send: SendRequest = (master, reply) => reservation.ask(master, reply);
    return this.runRound({ masters, request, timeout, countsFrom: attempt, send, requestToHome });
  }

  // It has succeeded if `extended` is true.
  async extend(ttl: number): Promise<Extension> {
    const { settings, clock, standstill } = this.context;
    const started = { since: clock.read(), stoodStill: standstill.total };
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    // Protocol 6.3
    if (this.validityOf(ttl) < this.remaining) this.countFrom(started, ttl);
    const timeout = Math.min(masterTimeoutFor(settings, ttl), Math.max(this.remaining, 0));
    const quorumCall = await this.renew(ttl, timeout);
    // A grant that arrives after the end of the old validity does not count: another holder may have come and gone.
    // Protocol 6.3
    const extended = quorumCall.outcome === 'granted' && this.remaining > 0;
    if (extended) {
      this.countFrom(started, ttl);
      this.replies = undefined;
    }
    return { extended, quorumCall };
  }

  async verify(ttl?: number): Promise<Extension | undefined> {
    const { settings, clock, standstill } = this.context;
    const started = { since: clock.read(), stoodStill: standstill.total };
    const left = this.leftWithoutWall(started.since);
    if (left <= 0) return undefined;
    const wanted = ttl ?? ttlFor(settings, left);
    const renewed = this.mayBeRenewed;
    const quorumCall = await this.renew(wanted, Math.min(masterTimeoutFor(settings, wanted), left), (answer, master) =>
      answer.kind === 'granted' && (answer.healed === true || renewed.has(master.name)) ? GONE : answer,
    );
    const now = clock.read();
    // What one master had before a new lead, it may lack by now.
    const isCertain = !hasLead(started.since, now) && this.leftWithoutWall(now) > 0;
    const isConfirmed = quorumCall.outcome === 'granted'; // @mutant minority-ends-a-doubt
    const extended = isConfirmed && isCertain;
    if (extended) {
      this.countFrom(started, wanted);
      if (ttl === undefined) this.validity = Math.floor(left);
      this.replies = undefined;
    }
    return { extended, quorumCall };
  }

  noteSetBack(milliseconds: number): void {
    this.since = shiftWall(this.since, -milliseconds);
  }

  drawToken(atLeast = 0): Promise<number | undefined> {
    const { token, names } = this;
    const { masters, clock, settings } = this.context;
    this.fencing ??= new TokenDraw({
      masters,
      clock,
      token,
      keys: names.keys,
      masterTimeout: settings.masterTimeout,
      remaining: () => this.remaining,
    });
    return this.fencing.run(atLeast);
  }

  // On every master that a request for the keys may have reached.
  release(keepFor: number, now?: Instant): Promise<void> {
    this.disengage(keepFor);
    this.phase = 'released';
    this.withdraw();
    if (this.reached.length === 0) return Promise.resolve(); // @mutant nothing-released
    const ttl = Math.max(keepFor, this.life);
    const { keys, queues } = this.names;
    const { token, isShared } = this;
    const request = { op: 'release', keys, queues, token, keepFor, ttl, isShared } as const;
    const { clock, settings, releases } = this.context;
    // Protocol 7.1
    const masters = withLast(this.reached, this.home);
    releases.begin();
    return new Promise((resolve) => {
      const conclude = (): void => {
        releases.end();
        resolve();
      };
      new QuorumCall({ masters, request, clock, timeout: settings.masterTimeout, conclude, now });
    });
  }

  // An attempt begins no other round after it.
  giveUp(): void {
    if (this.phase === 'attempt') this.phase = 'given up';
    if (this.sent?.quorumCall?.isOpen) this.sent.quorumCall.giveUp();
  }

  // Derived when a round needs them: most of the time, a lock is only held.
  private get names(): KeyNames {
    return this.permit ?? this.context.keyspace.namesOf(this.resources);
  }

  // Milliseconds of validity by the monotonic clock alone.
  private leftWithoutWall(now: Instant): number {
    return this.remainingAt({ ...now, wall: -Infinity });
  }

  // Where an extension may have set the keys again since the last one that succeeded.
  private get mayBeRenewed(): ReadonlySet<string> {
    // The round that succeeded last may still be under way to a master.
    const late = renewedIn(this.sent?.quorumCall?.report ?? []);
    return new Set([...(this.replies?.mayBeRenewed ?? []), ...late]);
  }

  private renew(
    ttl: number,
    timeout: number,
    judge?: (answer: MasterReply, master: Master) => MasterReply,
  ): Promise<QuorumCall> {
    const { token, isShared, names } = this;
    const { masters } = this.context;
    const request: ExtendRequest = { op: 'extend', keys: names.keys, token, ttl, withdrawn: false, isShared };
    const noteToken = this.fencing?.beginExtension();
    const send: SendRequest = (master, reply) =>
      master.ask(request, (answer) => {
        noteToken?.(master, answer);
        reply(judge ? judge(answer, master) : answer);
      });
    return this.runRound({ masters, request, timeout, send: noteToken || judge ? send : undefined });
  }

  private acquisition(attempt: AcquireAttempt, queue?: QueueTicket): AcquireRequest {
    const { ttl, waited, names = this.names } = attempt;
    const { token, isShared } = this;
    const sharing = isShared ? { barriers: names.barriers, waited } : undefined;
    return { op: 'acquire', keys: names.keys, token, ttl, withdrawn: false, queue, sharing };
  }

  private acquireAfter(first: QuorumCall, home: Master, attempt: AcquireAttempt): Promise<QuorumCall> {
    const [answer] = first.answered;
    if (this.phase === 'given up' || first.outcome !== 'granted' || !answer) return Promise.resolve(first);
    const { timeout } = attempt;
    const request = this.acquisition(attempt);
    // Protocol 5.6
    const send: SendRequest = (master, reply) => (master === home ? reply(answer) : master.ask(request, reply));
    return this.runRound({ masters: this.context.masters, request, timeout, countsFrom: attempt, send });
  }

  private runRound({ masters, request, timeout, countsFrom, send, requestToHome, now }: Round): Promise<QuorumCall> {
    // Unsent requests of the previous round are obsolete: this round does the same and more.
    if (this.sent) withdraw(this.sent); // @mutant an-extension-does-not-withdraw-the-acquisition
    const sent: SentRound = { request, requestToHome, quorumCall: undefined };
    this.sent = sent;
    this.life = Math.max(this.life, request.ttl);
    if (request.op !== 'extend') this.attempt ??= this.context.witness.beginAttempt();
    const conclude = (quorumCall: QuorumCall): void => {
      // A request without an answer counts as one that may have taken effect: no later answer can add a master.
      this.noteReached(quorumCall);
      if (request.op === 'extend') return;
      if (quorumCall.outcome !== 'granted') this.disengage();
      // Without `countsFrom`, the home master alone has granted.
      else if (countsFrom && this.confirm()) this.countFrom(countsFrom, request.ttl);
    };
    // Every master has answered: no request is left to withdraw.
    const settle = (): void => {
      if (this.sent === sent) this.sent = undefined;
    };
    const { clock } = this.context;
    const quorumCall = new QuorumCall({ masters, request: send ?? request, clock, timeout, conclude, settle, now });
    sent.quorumCall = quorumCall;
    if (request.op === 'extend') (this.replies ??= new ExtensionReplies()).begin(quorumCall);
    return quorumCall.decided;
  }

  // False if the witness does not count the lock.
  private confirm(): boolean {
    const { attempt } = this;
    this.attempt = undefined;
    const isCounted = attempt !== undefined && this.context.witness.confirm(attempt);
    if (isCounted) this.phase = 'lock';
    return isCounted;
  }

  // `keptFor`: milliseconds for which the keys stay taken.
  private disengage(keptFor = 0): void {
    const { witness } = this.context;
    if (this.attempt !== undefined) witness.abandon(this.attempt);
    this.attempt = undefined;
    if (this.phase === 'lock') witness.disengage(keptFor);
  }

  private countFrom({ since, stoodStill }: ValidityStart, ttl: number): void {
    // Protocol 3.2 and 4.4
    this.since = since; // @mutant start-time-taken-after-replies
    this.stoodStill = stoodStill;
    this.validity = this.validityOf(ttl);
  }

  private validityOf(ttl: number): number {
    // Whole milliseconds, and never more than was computed: a fraction takes memory of its own.
    return Math.floor(ttl - driftOf(this.context.settings, ttl)); // @mutant drift-ignored
  }

  // Every request that was sent is followed by its release, and no other request may be sent after that.
  private withdraw(): void {
    if (!this.sent) return;
    // Protocol 4.5 and 7.3
    withdraw(this.sent); // @mutant sent-again-after-its-release
    if (this.sent.quorumCall?.isOpen) this.noteReached(this.sent.quorumCall);
  }

  private noteReached({ reached }: QuorumCall): void {
    if (this.reached.length === 0) this.reached = reached;
    else if (this.reached.length < this.context.masters.length)
      this.reached = [...new Set([...this.reached, ...reached])];
  }
}

function withdraw({ request, requestToHome }: SentRound): void {
  request.withdrawn = true;
  if (requestToHome) requestToHome.withdrawn = true;
}

// So that the waiter that the home master wakes finds the keys free on the other masters, too.
function withLast(masters: readonly Master[], last: Master | undefined): readonly Master[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  const inOrder = masters.filter((master) => master !== last);
  inOrder.push(last);
  return inOrder;
}
