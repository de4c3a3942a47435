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
/** Beyond that, microseconds are close to the largest safe integer. */
const LATEST_WALL_CLOCK = Date.UTC(2200, 0, 1);
/** Every master gets a request of its own. */
const UNUSED: Request = Object.freeze({ op: 'inspect', keys: [] });

/** What one attempt needs. */
export interface TenureOptions {
  readonly masters: readonly Master[];
  readonly settings: Settings;
  readonly clock: Clock;
  readonly witness: Witness;
  readonly names: KeyNames;
  /** Tells this attempt from all others. */
  readonly token: string;
  /** Where others wait for the keys. */
  readonly gate?: Master | undefined;
}

/**
 * What one token holds on the masters: the three rounds of the algorithm, and how long their result may be relied on.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class Tenure implements Holding {
  /** When the round began that the validity counts from. */
  private since: Instant = NEVER;
  /** Milliseconds from `since`. */
  private validity = 0;
  /** Where something may have to be released. */
  private reached: readonly Master[] = NONE;
  /** What the round under way asks for. */
  private request: AcquireRequest | ExtendRequest | undefined;
  /** The same, where the gate is asked for more. */
  private requestAtGate: AcquireRequest | undefined;
  /** The round under way. */
  private ballot: Ballot | undefined;
  private released = false;
  /** Of a lock that was asked for its fencing token. */
  private fencing: TokenAgreement | undefined;
  /** Longest life in milliseconds that was asked for: until then there may be something to release. */
  private life = 0;

  private readonly masters: readonly Master[];
  private readonly settings: Settings;
  private readonly clock: Clock;
  private readonly witness: Witness;
  private readonly names: KeyNames;
  private readonly token: string;
  private readonly gate: Master | undefined;
  /** Whether the masters hear of this lock from the witness. */
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

  /** Milliseconds for which the lock may still be relied on; zero or less when it may not. */
  get remaining(): number {
    return this.remainingAt(this.clock.read());
  }

  /** Like {@link remaining}, where the clock has just been read. */
  remainingAt(now: Instant): number {
    return this.released ? 0 : this.validity - elapsedBetween(this.since, now);
  }

  /** When the round began that the validity counts from. */
  get validSince(): Instant {
    return this.since;
  }

  /** Tries to take all keys on a quorum of masters. It worked if `remaining` is positive afterwards. */
  acquire(ttl: number, timeout: number, explain: boolean): Promise<Ballot> {
    const started = this.clock.read();
    const succeed = (): void => this.believe(started, ttl);
    return this.hold(this.masters, this.acquisition(ttl, explain), timeout, succeed);
  }

  /**
   * Like {@link acquire}, but asks the gate first and the other masters only if it grants: of several that try at the
   * same time, only one gets past it. Who does not waits in the gate's queue.
   *
   * @param explain whether a refusal of the other masters must tell for how long
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
   * Like {@link acquireThrough}, for a key that the gate has just kept for this process: the other masters need not
   * wait for what it says.
   */
  acquireReserved(gate: Master, ttl: number, timeout: number, ticket: QueueTicket): Promise<Ballot> {
    const started = this.clock.read();
    const atGate = this.acquisition(ttl, true, ticket);
    const elsewhere = this.acquisition(ttl, false);
    const round = new ReservedRound(gate, atGate, elsewhere);
    const others = this.masters.filter((master) => master !== gate);
    // The gate first: until the others are asked, the old holder's release has had a little more time to get there.
    const succeed = (): void => this.believe(started, ttl);
    const ask: Asking = (master, reply) => round.ask(master, reply);
    return this.hold([gate, ...others], elsewhere, timeout, succeed, ask, atGate);
  }

  /** Tries to give the keys a new life. It worked if the answer is true. */
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
    // An answer that comes after the old validity counts for nothing: another holder may have come and gone.
    const extended = ballot.outcome === 'granted' && this.remaining > 0;
    if (extended) this.believe(started, ttl);
    return { extended, ballot };
  }

  /**
   * Rounds towards a fencing token, as many as are needed: a larger answer is progress, so another round follows at once.
   *
   * @returns `undefined` if a round brought neither an agreement nor progress
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

  /** The clock of this process stood still while the lock was held: its validity ends that much earlier. */
  shorten(milliseconds: number): void {
    this.validity -= milliseconds;
  }

  /** Gives the keys up, wherever a request for them may have arrived. Resolves at a quorum; never rejects. */
  release(keepFor: number): Promise<void> {
    this.released = true;
    this.endWitness();
    this.withdraw();
    if (this.reached.length === 0) return Promise.resolve();
    const ttl = Math.max(keepFor, this.life);
    const { keys, queues } = this.names;
    const request = { op: 'release', keys, queues, token: this.token, keepFor, ttl } as const;
    const { masterTimeout } = this.settings;
    return new Ballot(withLast(this.reached, this.gate), request, this.clock, masterTimeout).decided.then(nothing);
  }

  /** Ends the round that is under way: whoever has not answered has not answered in time. */
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
    // Whatever is still on its way for the round before need not be sent again: this one does the same and more.
    if (this.request) this.request.withdrawn = true;
    this.request = request;
    this.requestAtGate = requestAtGate;
    this.life = Math.max(this.life, request.ttl);
    if (request.op === 'acquire' && !this.isWitnessed) this.isWitnessed = this.witness.beginAttempt();
    const maySucceed = this.isWitnessed;
    const conclude = (ballot: Ballot): void => {
      // Whatever has been asked until now may have taken effect: nothing more is to be learnt from this round.
      this.ballot = undefined;
      this.noteReached(ballot);
      if (ballot.outcome === 'granted' && maySucceed) succeed?.();
      else if (request.op === 'acquire') this.endWitness();
    };
    // Nothing is on its way any more that could have to be withdrawn.
    const settle = (): void => {
      if (this.request === request) this.request = this.requestAtGate = undefined;
    };
    const ballot = new Ballot(masters, request, this.clock, timeout, conclude, ask, settle);
    if (ballot.isOpen) this.ballot = ballot;
    return ballot.decided;
  }

  private endWitness(): void {
    if (this.isWitnessed) this.witness.disengage();
    this.isWitnessed = false;
  }

  private believe(started: Instant, ttl: number): void {
    this.since = started;
    this.validity = this.reliableFor(ttl);
  }

  private reliableFor(ttl: number): number {
    return ttl - driftOf(this.settings, ttl);
  }

  /** What has been sent will be followed by its release; nothing else may be sent after that. */
  private withdraw(): void {
    if (this.request) this.request.withdrawn = true;
    if (this.requestAtGate) this.requestAtGate.withdrawn = true;
    if (this.ballot) this.noteReached(this.ballot);
  }

  private noteReached({ reached }: Ballot): void {
    if (this.reached.length === 0) this.reached = reached;
    else if (this.reached.length < this.masters.length) this.reached = [...new Set([...this.reached, ...reached])];
  }
}

/**
 * The least that a fencing token may be: microseconds of this client's wall clock, so that later locks start higher even
 * where the counters were lost. It is never lowered to what a server's clock says: a server that is late would move
 * tokens back.
 */
function floorOf(clock: Clock): number {
  const { wall } = clock.read();
  if (wall < LATEST_WALL_CLOCK) return Math.floor(wall * 1_000);
  const requirement = 'must show a time before the year 2200 for fencing tokens: correct the clock of this machine';
  throw new RedlockConfigError('wall clock', new Date(wall).toISOString(), requirement);
}

/** The gate last: whoever it wakes finds the keys free on the other masters, too. */
function withLast(masters: readonly Master[], last: Master | undefined): readonly Master[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  return [...masters.filter((master) => master !== last), last];
}

function nothing(): void {
  // What the masters answered to a release concerns nobody.
}
