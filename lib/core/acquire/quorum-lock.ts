import { type Clock, elapsedBetween, type Instant } from '../clock.js';
import { ExtensionReplies } from './extension-replies.js';
import type { MasterReport } from '../errors.js';
import type { Extension, LeasedKeys, StateAccess } from './leased-keys.interface.js';
import type { KeyNames } from '../keyspace.js';
import type { PermitChoice } from './permit-choice.js';
import type { AcquireRequest, ExtendRequest, Master, PickRequest, QueueTicket } from '../master.interface.js';
import { type SendRequest, QuorumCall } from './quorum-call.js';
import { HandOffReservation } from './hand-off-reservation.js';
import { driftOf, masterTimeoutFor, type Settings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';
import { Engagement } from './engagement.js';
import { TokenDraw } from './token-draw.js';

const NEVER: Instant = Object.freeze({ monotonic: 0, wall: 0 });
const NONE: readonly Master[] = Object.freeze([]);

/** The dependencies of one attempt. */
export interface QuorumLockOptions {
  readonly masters: readonly Master[];
  readonly settings: Settings;
  readonly clock: Clock;
  readonly witness: Witness;
  readonly names: KeyNames;
  readonly isShared: boolean;
  /** Identifies this attempt. */
  readonly token: string;
  /** The home master of the keys, where other processes wait for them. */
  readonly home?: Master | undefined;
}

/** One attempt to take all keys. */
export interface AcquireAttempt {
  /** Milliseconds. */
  readonly ttl: number;
  /** Milliseconds after which a master that has not answered counts as timed out. */
  readonly timeout: number;
  /** The moment from which the validity counts, read before the first request is sent and after all waiting. */
  readonly since: Instant;
  /** Milliseconds since the acquisition began. */
  readonly waited: number;
}

/** The queue in which an attempt waits if it is refused. */
export interface HomeQueue {
  readonly home: Master;
  readonly ticket: QueueTicket;
}

/** The permits of which the home master takes the first that is free. */
export interface SlotChoice {
  readonly permits: Pick<PermitChoice, 'all' | 'order' | 'namesOf'>;
  readonly home: Master;
  /** Absent for an acquisition that does not wait. */
  readonly ticket: QueueTicket | undefined;
}

/** One request to some masters. */
interface Round {
  readonly masters: readonly Master[];
  readonly request: AcquireRequest | ExtendRequest | PickRequest;
  readonly timeout: number;
  /**
   * The moment from which the validity counts if a quorum grants. Absent in the round to the home master alone, which
   * decides nothing, and in extensions, which `extend` counts itself.
   */
  readonly countsFrom?: Instant;
  /** Sends the request to a master, where `master.ask(request)` is not enough. */
  readonly send?: SendRequest | undefined;
  /** The request to the home master, if it differs from `request`. */
  readonly requestToHome?: AcquireRequest;
}

/**
 * The keys of one token on the masters: the three rounds of the algorithm (acquire, extend, release), and how long
 * their result can be relied on.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class QuorumLock implements LeasedKeys {
  /** Start of the round from which the validity counts. */
  private since: Instant = NEVER;
  /** Milliseconds from `since`. */
  private validity = 0;
  /** Masters on which there may be something to release. */
  private reached: readonly Master[] = NONE;
  /** The request of the current round. */
  private request: AcquireRequest | ExtendRequest | PickRequest | undefined;
  /** The request to the home master, if it differs from `request`. */
  private requestToHome: AcquireRequest | undefined;
  /** The current round; `undefined` once it is decided. */
  private quorumCall: QuorumCall | undefined;
  private released = false;
  /** Present once the fencing token has been requested. */
  private fencing: TokenDraw | undefined;
  /** Longest ttl in milliseconds that was requested: until it ends, there may be something to release. */
  private life = 0;

  /** Present from the first extension on. */
  private replies: ExtensionReplies | undefined;

  private readonly masters: readonly Master[];
  private readonly settings: Settings;
  private readonly clock: Clock;
  private names: KeyNames;
  private readonly isShared: boolean;
  private readonly token: string;
  private readonly home: Master | undefined;
  private readonly engagement: Engagement;

  constructor({ masters, settings, clock, witness, names, isShared, token, home }: QuorumLockOptions) {
    this.masters = masters;
    this.settings = settings;
    this.clock = clock;
    this.engagement = new Engagement(witness);
    this.names = names;
    this.isShared = isShared;
    this.token = token;
    this.home = home;
  }

  /** Milliseconds for which the lock can still be relied on; zero or less if it cannot. */
  get remaining(): number {
    return this.remainingAt(this.clock.read());
  }

  /** Like {@link remaining}, at a clock reading that the caller already has. */
  remainingAt(now: Instant): number {
    return this.released ? 0 : this.validity - elapsedBetween(this.since, now); // @mutant elapsed-ignored
  }

  /** Start of the round from which the validity counts. */
  get validSince(): Instant {
    return this.since;
  }

  get lastReplies(): readonly MasterReport[] {
    return this.replies?.last ?? [];
  }

  /** The number of the permit; `undefined` for a lock. */
  get slot(): number | undefined {
    return this.names.slot;
  }

  get stateAccess(): StateAccess | undefined {
    const { masters, settings, token, names } = this;
    const { keys, state } = names;
    const [key] = keys;
    if (key === undefined || state === undefined || this.isShared) return undefined;
    return { masters, key, entry: state, token, masterTimeout: settings.masterTimeout };
  }

  /** Tries to take all keys on a quorum of masters. It has succeeded if `remaining` is positive afterwards. */
  acquire(attempt: AcquireAttempt): Promise<QuorumCall> {
    const { timeout, since } = attempt;
    return this.runRound({ masters: this.masters, request: this.acquisition(attempt), timeout, countsFrom: since });
  }

  /**
   * Like {@link acquire}, but contacts the home master first, and the others only after it has granted. Of several
   * concurrent attempts, only one gets past the home master; the others wait in its queue.
   */
  async acquireThrough(attempt: AcquireAttempt, { home, ticket }: HomeQueue): Promise<QuorumCall> {
    const { timeout } = attempt;
    const first = await this.runRound({ masters: [home], request: this.acquisition(attempt, ticket), timeout });
    return this.acquireAfter(first, home, attempt);
  }

  /** Like {@link acquireThrough}, for the permit that the home master finds free. */
  async acquireOneOf(attempt: AcquireAttempt, { permits, home, ticket }: SlotChoice): Promise<QuorumCall> {
    const { ttl, timeout } = attempt;
    const { order } = permits;
    // Until one is taken, the key to release is not known.
    this.names = permits.all;
    const request: PickRequest = { op: 'pick', keys: order, token: this.token, ttl, withdrawn: false, queue: ticket };
    const first = await this.runRound({ masters: [home], request, timeout });
    const [answer] = first.answered;
    const picked = answer?.kind === 'granted' ? order[answer.picked ?? -1] : undefined;
    if (picked !== undefined) this.names = permits.namesOf(picked);
    return this.acquireAfter(first, home, attempt);
  }

  /**
   * Like {@link acquireThrough}, for a key that the home master has just reserved for this process: the other masters
   * are contacted without waiting for its answer.
   */
  acquireReserved(attempt: AcquireAttempt, { home, ticket }: HomeQueue): Promise<QuorumCall> {
    const { timeout, since } = attempt;
    const requestToHome = this.acquisition(attempt, ticket);
    const request = this.acquisition(attempt);
    const reservation = new HandOffReservation(home, requestToHome, request);
    // The home master first: this gives the previous holder's release a little more time to reach the others.
    const masters = [home, ...this.masters.filter((master) => master !== home)];
    const send: SendRequest = (master, reply) => reservation.ask(master, reply);
    return this.runRound({ masters, request, timeout, countsFrom: since, send, requestToHome });
  }

  /** Tries to renew the keys. It has succeeded if `extended` is true. */
  async extend(ttl: number): Promise<Extension> {
    const started = this.clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (this.validityOf(ttl) < this.remaining) this.countFrom(started, ttl);
    const timeout = Math.min(masterTimeoutFor(this.settings, ttl), Math.max(this.remaining, 0));
    const { keys } = this.names;
    const { token, isShared } = this;
    const request: ExtendRequest = { op: 'extend', keys, token, ttl, withdrawn: false, isShared };
    const noteToken = this.fencing?.beginExtension();
    const send: SendRequest | undefined =
      noteToken &&
      ((master, reply) =>
        master.ask(request, (answer) => {
          noteToken(master, answer);
          reply(answer);
        }));
    const quorumCall = await this.runRound({ masters: this.masters, request, timeout, send });
    // A grant that arrives after the end of the old validity does not count: another holder may have come and gone.
    const extended = quorumCall.outcome === 'granted' && this.remaining > 0; // @mutant extension-counted-after-the-old-validity
    if (extended) {
      this.countFrom(started, ttl);
      this.replies = undefined;
    }
    return { extended, quorumCall };
  }

  /** Agrees on a fencing token of at least `atLeast`. Resolves with `undefined` if there is no agreement. */
  drawToken(atLeast = 0): Promise<number | undefined> {
    const { masters, clock, token, names, settings } = this;
    this.fencing ??= new TokenDraw({
      ...{ masters, clock, token, keys: names.keys, masterTimeout: settings.masterTimeout },
      remaining: () => this.remaining,
    });
    return this.fencing.run(atLeast);
  }

  /** Ends the validity earlier, because the clock of this process stood still while the lock was held. */
  shorten(milliseconds: number): void {
    this.validity -= milliseconds;
  }

  /**
   * Releases the keys on every master that a request for them may have reached. Resolves when a quorum of these has
   * answered, or after the master timeout; never rejects.
   */
  release(keepFor: number): Promise<void> {
    this.released = true;
    this.engagement.end(keepFor);
    this.withdraw();
    if (this.reached.length === 0) return Promise.resolve(); // @mutant nothing-released
    const ttl = Math.max(keepFor, this.life);
    const { keys, queues } = this.names;
    const { token, isShared } = this;
    const request = { op: 'release', keys, queues, token, keepFor, ttl, isShared } as const;
    const { masterTimeout } = this.settings;
    const masters = withLast(this.reached, this.home);
    return new QuorumCall({ masters, request, clock: this.clock, timeout: masterTimeout }).decided.then(nothing);
  }

  /** Ends the current round: masters that have not answered count as timed out. */
  giveUp(): void {
    this.quorumCall?.giveUp();
  }

  private acquisition({ ttl, waited }: AcquireAttempt, queue?: QueueTicket): AcquireRequest {
    const { names, token, isShared } = this;
    const sharing = isShared ? { barriers: names.barriers, waited } : undefined;
    return { op: 'acquire', keys: names.keys, token, ttl, withdrawn: false, queue, sharing };
  }

  /** The round to all masters after the one to the home master alone, if that has granted. */
  private acquireAfter(first: QuorumCall, home: Master, attempt: AcquireAttempt): Promise<QuorumCall> {
    const [answer] = first.answered;
    if (first.outcome !== 'granted' || !answer) return Promise.resolve(first);
    const { timeout, since } = attempt;
    const request = this.acquisition(attempt);
    const send: SendRequest = (master, reply) => (master === home ? reply(answer) : master.ask(request, reply));
    return this.runRound({ masters: this.masters, request, timeout, countsFrom: since, send });
  }

  private runRound({ masters, request, timeout, countsFrom, send, requestToHome }: Round): Promise<QuorumCall> {
    // Unsent requests of the previous round are obsolete: this round does the same and more.
    if (this.request) this.request.withdrawn = true; // @mutant an-extension-does-not-withdraw-the-acquisition
    if (this.requestToHome) this.requestToHome.withdrawn = true;
    this.request = request;
    this.requestToHome = requestToHome;
    this.life = Math.max(this.life, request.ttl);
    if (request.op !== 'extend') this.engagement.begin();
    const conclude = (quorumCall: QuorumCall): void => {
      // A request without an answer counts as one that may have taken effect: no later answer can add a master.
      this.quorumCall = undefined;
      this.noteReached(quorumCall);
      if (request.op === 'extend') return;
      const isGranted = quorumCall.outcome === 'granted' && this.engagement.isCounted;
      if (!isGranted) this.engagement.end();
      // Without `countsFrom`, the home master alone has granted.
      else if (countsFrom && this.engagement.confirm()) this.countFrom(countsFrom, request.ttl);
    };
    // Every master has answered: no request is left to withdraw.
    const settle = (): void => {
      if (this.request === request) this.request = this.requestToHome = undefined;
    };
    const quorumCall = new QuorumCall({ masters, request, clock: this.clock, timeout, conclude, send, settle });
    if (quorumCall.isOpen) this.quorumCall = quorumCall;
    if (request.op === 'extend') (this.replies ??= new ExtensionReplies()).begin(quorumCall);
    return quorumCall.decided;
  }

  private countFrom(started: Instant, ttl: number): void {
    this.since = started; // @mutant start-time-taken-after-replies
    this.validity = this.validityOf(ttl);
  }

  private validityOf(ttl: number): number {
    return ttl - driftOf(this.settings, ttl); // @mutant drift-ignored
  }

  /** Every request that was sent is followed by its release, and no other request may be sent after that. */
  private withdraw(): void {
    if (this.request) this.request.withdrawn = true; // @mutant sent-again-after-its-release
    if (this.requestToHome) this.requestToHome.withdrawn = true;
    if (this.quorumCall) this.noteReached(this.quorumCall);
  }

  private noteReached({ reached }: QuorumCall): void {
    if (this.reached.length === 0) this.reached = reached;
    else if (this.reached.length < this.masters.length) this.reached = [...new Set([...this.reached, ...reached])];
  }
}

/** Puts the home master last, so that the waiter that it wakes finds the keys free on the other masters, too. */
function withLast(masters: readonly Master[], last: Master | undefined): readonly Master[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  return [...masters.filter((master) => master !== last), last];
}

function nothing(): void {
  // The answers to a release have no consequence.
}
