import { type Clock, elapsedBetween, type Instant } from './clock.js';
import { RedlockConfigError } from './errors.js';
import { TokenAgreement } from './fencing.js';
import type { Extension, Holding } from './holding.interface.js';
import type { KeyNames } from './key-names.js';
import type { AcquireRequest, ExtendRequest, Master, QueueTicket, Request } from './master.interface.js';
import { type Asking, Ballot, quorumOf } from './quorum.js';
import { ReservedRound } from './reserved-round.js';
import { driftOf, masterTimeoutFor, type Settings } from './settings.js';
import type { Witness } from './witness.interface.js';

const NEVER: Instant = Object.freeze({ monotonic: 0, wall: 0 });
const NONE: readonly Master[] = Object.freeze([]);
/** Beyond this time, microseconds approach the largest safe integer. */
const LATEST_WALL_CLOCK = Date.UTC(2200, 0, 1);
/** A placeholder: in a round of draws, every master gets a request of its own. */
const UNUSED: Request = Object.freeze({ op: 'inspect', keys: [] });

/** The dependencies of one attempt. */
export interface TenureOptions {
  readonly masters: readonly Master[];
  readonly settings: Settings;
  readonly clock: Clock;
  readonly witness: Witness;
  readonly names: KeyNames;
  /** Identifies this attempt. */
  readonly token: string;
  /** The home master of the keys, where other processes wait for them. */
  readonly gate?: Master | undefined;
}

/**
 * The keys of one token on the masters: the three rounds of the algorithm (acquire, extend, release), and how long
 * their result can be relied on.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class Tenure implements Holding {
  /** Start of the round from which the validity counts. */
  private since: Instant = NEVER;
  /** Milliseconds from `since`. */
  private validity = 0;
  /** Masters on which there may be something to release. */
  private reached: readonly Master[] = NONE;
  /** The request of the current round. */
  private request: AcquireRequest | ExtendRequest | undefined;
  /** The request to the home master, if it differs from `request`. */
  private requestAtGate: AcquireRequest | undefined;
  /** The current round; `undefined` once it is decided. */
  private ballot: Ballot | undefined;
  private released = false;
  /** Present once the fencing token has been requested. */
  private fencing: TokenAgreement | undefined;
  /** Longest ttl in milliseconds that was requested: until it ends, there may be something to release. */
  private life = 0;

  private readonly masters: readonly Master[];
  private readonly settings: Settings;
  private readonly clock: Clock;
  private readonly witness: Witness;
  private readonly names: KeyNames;
  private readonly token: string;
  private readonly gate: Master | undefined;
  /** Identifies the attempt to the witness; `undefined` if it does not count or is over. */
  private attempt: number | undefined;
  /** Whether the witness counts the lock that resulted from the attempt. */
  private isWitnessed = false;

  constructor({ masters, settings, clock, witness, names, token, gate }: TenureOptions) {
    this.masters = masters;
    this.settings = settings;
    this.clock = clock;
    this.witness = witness;
    this.names = names;
    this.token = token;
    this.gate = gate;
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

  /** Tries to take all keys on a quorum of masters. It has succeeded if `remaining` is positive afterwards. */
  acquire(ttl: number, timeout: number, explain: boolean): Promise<Ballot> {
    const started = this.clock.read();
    const succeed = (): void => this.believe(started, ttl);
    return this.hold(this.masters, this.acquisition(ttl, explain), timeout, succeed);
  }

  /**
   * Like {@link acquire}, but contacts the home master first, and the others only after it has granted. Of several
   * concurrent attempts, only one gets past the home master; the others wait in its queue.
   *
   * @param explain whether a refusal of the other masters must include how long the keys stay held
   */
  async acquireThrough(
    gate: Master,
    ttl: number,
    timeout: number,
    ticket: QueueTicket,
    explain: boolean,
  ): Promise<Ballot> {
    const started = this.clock.read();
    const first = await this.hold([gate], this.acquisition(ttl, true, ticket), timeout);
    const [answer] = first.answered;
    if (first.outcome !== 'granted' || !answer) return first;
    const rest = this.acquisition(ttl, explain);
    const succeed = (): void => this.believe(started, ttl);
    return this.hold(this.masters, rest, timeout, succeed, (master, reply) =>
      master === gate ? reply(answer) : master.ask(rest, reply),
    );
  }

  /**
   * Like {@link acquireThrough}, for a key that the home master has just reserved for this process: the other masters
   * are contacted without waiting for its answer.
   */
  acquireReserved(gate: Master, ttl: number, timeout: number, ticket: QueueTicket): Promise<Ballot> {
    const started = this.clock.read();
    const atGate = this.acquisition(ttl, true, ticket);
    const elsewhere = this.acquisition(ttl, false);
    const round = new ReservedRound(gate, atGate, elsewhere);
    const others = this.masters.filter((master) => master !== gate);
    // The home master first: this gives the previous holder's release a little more time to reach the others.
    const succeed = (): void => this.believe(started, ttl);
    const ask: Asking = (master, reply) => round.ask(master, reply);
    return this.hold([gate, ...others], elsewhere, timeout, succeed, ask, atGate);
  }

  /** Tries to renew the keys. It has succeeded if `extended` is true. */
  async extend(ttl: number): Promise<Extension> {
    const started = this.clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (this.reliableFor(ttl) < this.remaining) this.believe(started, ttl);
    const timeout = Math.min(masterTimeoutFor(this.settings, ttl), Math.max(this.remaining, 0));
    const { keys } = this.names;
    const request: ExtendRequest = { op: 'extend', keys, token: this.token, ttl, withdrawn: false };
    const heard = this.fencing?.beginExtension();
    const ask: Asking | undefined =
      heard &&
      ((master, reply) =>
        master.ask(request, (answer) => {
          heard(master, answer);
          reply(answer);
        }));
    const ballot = await this.hold(this.masters, request, timeout, undefined, ask);
    // A grant that arrives after the end of the old validity does not count: another holder may have come and gone.
    const extended = ballot.outcome === 'granted' && this.remaining > 0; // @mutant extension-counted-after-the-old-validity
    if (extended) this.believe(started, ttl);
    return { extended, ballot };
  }

  /**
   * Runs as many rounds as an agreement on a fencing token needs. A larger number is progress, so another round follows
   * at once.
   *
   * @returns `undefined` if a round brought neither an agreement nor progress, or if the validity ended
   */
  async drawToken(atLeast = 0): Promise<number | undefined> {
    const { keys } = this.names;
    const fencing = (this.fencing ??= new TokenAgreement(quorumOf(this.masters.length), { keys, token: this.token }));
    fencing.demand(atLeast);
    let agreed = fencing.agreed;
    while (agreed === undefined) {
      const before = fencing.progress;
      const floor = floorOf(this.clock);
      const ask: Asking = (master, reply) => {
        const { request, judge } = fencing.drawFrom(master, floor);
        master.ask(request, (answer) => reply(judge(answer)));
      };
      const timeout = Math.min(this.settings.masterTimeout, Math.max(this.remaining, 0));
      const { fences } = await new Ballot(this.masters, UNUSED, this.clock, timeout, undefined, ask).decided;
      agreed = fencing.conclude(fences);
      if (agreed === undefined && (fencing.progress === before || this.remaining <= 0)) return undefined;
    }
    return agreed;
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
    this.endWitness(keepFor);
    this.withdraw();
    if (this.reached.length === 0) return Promise.resolve(); // @mutant nothing-released
    const ttl = Math.max(keepFor, this.life);
    const { keys, queues } = this.names;
    const request = { op: 'release', keys, queues, token: this.token, keepFor, ttl } as const;
    const { masterTimeout } = this.settings;
    return new Ballot(withLast(this.reached, this.gate), request, this.clock, masterTimeout).decided.then(nothing);
  }

  /** Ends the current round: masters that have not answered count as timed out. */
  giveUp(): void {
    this.ballot?.giveUp();
  }

  private acquisition(ttl: number, explain: boolean, queue?: QueueTicket): AcquireRequest {
    const { keys } = this.names;
    return { op: 'acquire', keys, token: this.token, ttl, explain, withdrawn: false, queue };
  }

  private hold(
    masters: readonly Master[],
    request: AcquireRequest | ExtendRequest,
    timeout: number,
    succeed?: () => void,
    ask?: Asking,
    requestAtGate?: AcquireRequest,
  ): Promise<Ballot> {
    // Unsent requests of the previous round are obsolete: this round does the same and more.
    if (this.request) this.request.withdrawn = true; // @mutant an-extension-does-not-withdraw-the-acquisition
    this.request = request;
    this.requestAtGate = requestAtGate;
    this.life = Math.max(this.life, request.ttl);
    if (request.op === 'acquire') this.attempt ??= this.witness.beginAttempt();
    const conclude = (ballot: Ballot): void => {
      // A request without an answer counts as one that may have taken effect: no later answer can add a master.
      this.ballot = undefined;
      this.noteReached(ballot);
      if (request.op !== 'acquire') return;
      const isGranted = ballot.outcome === 'granted' && this.attempt !== undefined;
      if (!isGranted) this.endWitness();
      // The home master alone decides nothing.
      else if (succeed && this.confirm()) succeed();
    };
    // Every master has answered: no request is left to withdraw.
    const settle = (): void => {
      if (this.request === request) this.request = this.requestAtGate = undefined;
    };
    const ballot = new Ballot(masters, request, this.clock, timeout, conclude, ask, settle);
    if (ballot.isOpen) this.ballot = ballot;
    return ballot.decided;
  }

  /** The attempt has a quorum. Returns whether it counts. */
  private confirm(): boolean {
    this.isWitnessed = this.attempt !== undefined && this.witness.confirm(this.attempt);
    this.attempt = undefined;
    return this.isWitnessed;
  }

  private endWitness(keptFor = 0): void {
    if (this.attempt !== undefined) this.witness.abandon(this.attempt);
    if (this.isWitnessed) this.witness.disengage(keptFor);
    this.attempt = undefined;
    this.isWitnessed = false;
  }

  private believe(started: Instant, ttl: number): void {
    this.since = started; // @mutant start-time-taken-after-replies
    this.validity = this.reliableFor(ttl);
  }

  private reliableFor(ttl: number): number {
    return ttl - driftOf(this.settings, ttl); // @mutant drift-ignored
  }

  /** Every request that was sent is followed by its release, and no other request may be sent after that. */
  private withdraw(): void {
    if (this.request) this.request.withdrawn = true; // @mutant sent-again-after-its-release
    if (this.requestAtGate) this.requestAtGate.withdrawn = true;
    if (this.ballot) this.noteReached(this.ballot);
  }

  private noteReached({ reached }: Ballot): void {
    if (this.reached.length === 0) this.reached = reached;
    else if (this.reached.length < this.masters.length) this.reached = [...new Set([...this.reached, ...reached])];
  }
}

/**
 * Lower bound of a fencing token: microseconds of this client's wall clock, so that later locks start higher even if
 * the counters were lost. A server's clock never lowers it, because a server that is behind would move tokens back.
 */
function floorOf(clock: Clock): number {
  const { wall } = clock.read();
  if (wall < LATEST_WALL_CLOCK) return Math.floor(wall * 1_000);
  const requirement = 'must show a time before the year 2200 for fencing tokens: correct the clock of this machine';
  throw new RedlockConfigError('wall clock', new Date(wall).toISOString(), requirement);
}

/** Puts the home master last, so that the waiter that it wakes finds the keys free on the other masters, too. */
function withLast(masters: readonly Master[], last: Master | undefined): readonly Master[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  return [...masters.filter((master) => master !== last), last];
}

function nothing(): void {
  // The answers to a release have no consequence.
}
