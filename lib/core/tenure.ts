import { type Clock, elapsedBetween, type Instant } from './clock.js';
import { RedlockConfigError } from './errors.js';
import { agree } from './fencing.js';
import type { Extension, Holding } from './holding.interface.js';
import type { KeyNames } from './key-names.js';
import type { AcquireRequest, ConfirmRequest, ExtendRequest, Master, QueueTicket } from './master.interface.js';
import { type Asking, Ballot, quorumOf } from './quorum.js';
import { ReservedRound } from './reserved-round.js';
import { driftOf, masterTimeoutFor, type Settings } from './settings.js';

const NEVER: Instant = Object.freeze({ monotonic: 0, wall: 0 });
const NONE: readonly Master[] = Object.freeze([]);

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
  /** The largest fencing counter seen, and whether it is agreed that this is the token. */
  private fence = 0;
  private isAgreed = false;
  /** Longest life in milliseconds that was asked for: until then there may be something to release. */
  private life = 0;

  constructor(
    private readonly masters: readonly Master[],
    private readonly settings: Settings,
    private readonly clock: Clock,
    private readonly names: KeyNames,
    private readonly token: string,
    /** Where others wait for the keys. */
    private readonly gate?: Master,
  ) {}

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
    const succeed = (ballot: Ballot): void => this.succeed(started, ttl, ballot);
    return this.hold(this.masters, this.acquisition(ttl, started, explain), timeout, succeed);
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
    const first = await this.hold([gate], this.acquisition(ttl, started, true, ticket), timeout);
    const [answer] = first.answered;
    if (first.outcome !== 'granted' || !answer) return first;
    const rest = this.acquisition(ttl, started, explain);
    const succeed = (ballot: Ballot): void => this.succeed(started, ttl, ballot);
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
    const atGate = this.acquisition(ttl, started, true, ticket);
    const elsewhere = this.acquisition(ttl, started, false);
    const round = new ReservedRound(gate, atGate, elsewhere);
    const others = this.masters.filter((master) => master !== gate);
    // The gate first: until the others are asked, the old holder's release has had a little more time to get there.
    const succeed = (ballot: Ballot): void => this.succeed(started, ttl, ballot);
    const ask: Asking = (master, reply) => round.ask(master, reply);
    return this.hold([gate, ...others], elsewhere, timeout, succeed, ask, atGate);
  }

  /** Tries to give the keys a new life. It worked if the answer is true. */
  async extend(ttl: number): Promise<Extension> {
    const started = this.clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (this.reliableFor(ttl) < this.remaining) this.believe(started, ttl);
    const timeout = Math.min(masterTimeoutFor(this.settings, ttl), Math.max(this.remaining, 0));
    const { keys, counters } = this.names;
    const fence = counters && { fields: counters.fields, token: this.fence };
    const request: ExtendRequest = { op: 'extend', keys, token: this.token, ttl, withdrawn: false, fence };
    const ballot = await this.hold(this.masters, request, timeout);
    // An answer that comes after the old validity counts for nothing: another holder may have come and gone.
    const extended = ballot.outcome === 'granted' && this.remaining > 0;
    if (extended) this.believe(started, ttl);
    return { extended, ballot };
  }

  /**
   * Rounds towards a fencing token, as many as are needed: a token stands when a quorum says exactly that while the keys
   * are ours. A larger answer is progress, so another round follows at once. Returns `undefined` if there was none.
   */
  async confirm(atLeast = 0): Promise<number | undefined> {
    const { keys, counters } = this.names;
    if (!counters) throw new RedlockConfigError('fencing', false, 'must be true for fencing tokens');
    if (atLeast > this.fence) {
      this.fence = atLeast;
      this.isAgreed = false;
    }
    let { isAgreed } = this;
    while (!isAgreed) {
      const token = this.fence;
      const request: ConfirmRequest = { op: 'confirm', keys, token: this.token, fence: { ...counters, token } };
      const timeout = Math.min(this.settings.masterTimeout, Math.max(this.remaining, 0));
      const { fences } = await new Ballot(this.masters, request, this.clock, timeout).decided;
      isAgreed = this.agree(token, fences);
      if (!isAgreed && (this.fence === token || this.remaining <= 0)) return undefined;
    }
    return this.fence;
  }

  /** Gives the keys up, wherever a request for them may have arrived. Resolves at a quorum; never rejects. */
  release(keepFor: number): Promise<void> {
    this.released = true;
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

  private acquisition(ttl: number, now: Instant, explain: boolean, queue?: QueueTicket): AcquireRequest {
    const { keys, counters } = this.names;
    // Microseconds, so that whoever comes later starts higher even where the counters were lost.
    const fence = counters && { fields: counters.fields, floor: Math.floor(now.wall * 1_000) };
    return { op: 'acquire', keys, token: this.token, ttl, explain, withdrawn: false, fence, queue };
  }

  private hold(
    masters: readonly Master[],
    request: AcquireRequest | ExtendRequest,
    timeout: number,
    succeed?: (ballot: Ballot) => void,
    ask?: Asking,
    requestAtGate?: AcquireRequest,
  ): Promise<Ballot> {
    // Whatever is still on its way for the round before need not be sent again: this one does the same and more.
    if (this.request) this.request.withdrawn = true;
    this.request = request;
    this.requestAtGate = requestAtGate;
    this.life = Math.max(this.life, request.ttl);
    const conclude = (ballot: Ballot): void => {
      // Whatever has been asked until now may have taken effect: nothing more is to be learnt from this round.
      this.ballot = undefined;
      this.noteReached(ballot);
      if (ballot.outcome === 'granted') succeed?.(ballot);
    };
    // Nothing is on its way any more that could have to be withdrawn.
    const settle = (): void => {
      if (this.request === request) this.request = this.requestAtGate = undefined;
    };
    const ballot = new Ballot(masters, request, this.clock, timeout, conclude, ask, settle);
    if (ballot.isOpen) this.ballot = ballot;
    return ballot.decided;
  }

  private succeed(started: Instant, ttl: number, { fences }: Ballot): void {
    this.believe(started, ttl);
    this.agree(0, fences);
  }

  private agree(token: number, answers: readonly number[]): boolean {
    const state = agree(token, answers, quorumOf(this.masters.length));
    this.fence = state.token;
    this.isAgreed = state.agreed;
    return state.agreed;
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

/** The gate last: whoever it wakes finds the keys free on the other masters, too. */
function withLast(masters: readonly Master[], last: Master | undefined): readonly Master[] {
  if (last === undefined || masters.at(-1) === last || !masters.includes(last)) return masters;
  return [...masters.filter((master) => master !== last), last];
}

function nothing(): void {
  // What the masters answered to a release concerns nobody.
}
