import { type Clock, elapsedSince, type Instant } from './clock.js';
import { RedlockConfigError } from './errors.js';
import { agree, type FenceState } from './fencing.js';
import type {
  AcquireRequest,
  Answer,
  ConfirmRequest,
  ExtendRequest,
  FenceCounters,
  Master,
  QueueTicket,
} from './master.interface.js';
import { Ballot, quorumOf } from './quorum.js';
import { driftOf, masterTimeoutFor, type Settings } from './settings.js';

/** What belongs to some resources on the masters. */
export interface KeyNames {
  /** Keys, sorted. */
  readonly keys: readonly string[];
  /** Queues of the keys, in the same order. */
  readonly queues: readonly string[];
  /** Counters of the keys, in the same order; absent without fencing. */
  readonly counters?: FenceCounters;
}

/**
 * What one token holds on the masters: the three rounds of the algorithm, and how long their result may be relied on.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class Tenure {
  /** When the round began that the validity counts from. */
  private since: Instant;
  /** Milliseconds from `since`. */
  private validity = 0;
  private readonly reached = new Set<Master>();
  private request: AcquireRequest | ExtendRequest | undefined;
  private ballot: Ballot | undefined;
  private released = false;
  private fence: FenceState = { token: 0, agreed: false };
  /** Longest life in milliseconds that was asked for: until then there may be something to release. */
  private life = 0;

  constructor(
    private readonly masters: readonly Master[],
    private readonly settings: Settings,
    private readonly clock: Clock,
    private readonly names: KeyNames,
    private readonly token: string,
  ) {
    this.since = clock.read();
  }

  /** Milliseconds for which the lock may still be relied on; zero or less when it may not. */
  get remaining(): number {
    return this.released ? 0 : this.validity - elapsedSince(this.clock, this.since);
  }

  /** When the round began that the validity counts from. */
  get validSince(): Instant {
    return this.since;
  }

  /** Tries to take all keys on a quorum of masters. It worked if `remaining` is positive afterwards. */
  async acquire(ttl: number, timeout: number, explain: boolean): Promise<Ballot> {
    const started = this.clock.read();
    const ballot = await this.hold(this.masters, { ...this.acquisition(ttl), explain }, timeout);
    if (ballot.outcome === 'granted') this.succeed(started, ttl, ballot);
    return ballot;
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
    const request = this.acquisition(ttl);
    const first = await this.hold([gate], { ...request, explain: true, queue: ticket }, timeout);
    const [answer] = first.answered;
    if (first.outcome !== 'granted' || !answer) return first;
    const before = { master: gate, answer };
    const ballot = await this.hold(this.masters, { ...request, explain }, timeout, before);
    if (ballot.outcome === 'granted') this.succeed(started, ttl, ballot);
    return ballot;
  }

  /** Tries to give the keys a new life. It worked if the answer is true. */
  async extend(ttl: number): Promise<{ readonly extended: boolean; readonly ballot: Ballot }> {
    const started = this.clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (this.reliableFor(ttl) < this.remaining) this.believe(started, ttl);
    const timeout = Math.min(masterTimeoutFor(this.settings, ttl), Math.max(this.remaining, 0));
    const { keys, counters } = this.names;
    const request: ExtendRequest = {
      ...{ op: 'extend', keys, token: this.token, ttl, withdrawn: false },
      ...(counters && { fence: { ...counters, token: this.fence.token } }),
    };
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
  async confirm(): Promise<number | undefined> {
    const { keys, counters } = this.names;
    if (!counters) throw new RedlockConfigError('fencing', false, 'must be true for fencing tokens');
    while (!this.fence.agreed) {
      const { token } = this.fence;
      const request: ConfirmRequest = { op: 'confirm', keys, token: this.token, fence: { ...counters, token } };
      const timeout = Math.min(this.settings.masterTimeout, Math.max(this.remaining, 0));
      const { fences } = await new Ballot(this.masters, request, this.clock, timeout).decided;
      this.fence = agree(token, fences, quorumOf(this.masters.length));
      if (!this.fence.agreed && (this.fence.token === token || this.remaining <= 0)) return undefined;
    }
    return this.fence.token;
  }

  /** Gives the keys up, wherever a request for them may have arrived. Resolves at a quorum; never rejects. */
  async release(keepFor: number): Promise<void> {
    this.released = true;
    this.withdraw();
    if (this.reached.size === 0) return;
    const ttl = Math.max(keepFor, this.life);
    const { keys, queues } = this.names;
    const request = { op: 'release', keys, queues, token: this.token, keepFor, ttl } as const;
    await new Ballot([...this.reached], request, this.clock, this.settings.masterTimeout).decided;
  }

  /** Ends the round that is under way: whoever has not answered has not answered in time. */
  giveUp(): void {
    this.ballot?.giveUp();
  }

  private acquisition(ttl: number): Omit<AcquireRequest, 'explain'> {
    const { keys, counters } = this.names;
    // Microseconds, so that whoever comes later starts higher even where the counters were lost.
    const floor = Math.floor(this.clock.read().wall * 1_000);
    return {
      ...{ op: 'acquire', keys, token: this.token, ttl, withdrawn: false },
      ...(counters && { fence: { ...counters, floor } }),
    };
  }

  private async hold(
    masters: readonly Master[],
    request: AcquireRequest | ExtendRequest,
    timeout: number,
    before?: { readonly master: Master; readonly answer: Answer },
  ): Promise<Ballot> {
    // Whatever is still on its way for the round before need not be sent again: this one does the same and more.
    if (this.request) this.request.withdrawn = true;
    this.request = request;
    this.life = Math.max(this.life, request.ttl);
    this.ballot = new Ballot(masters, request, this.clock, timeout, before);
    const ballot = await this.ballot.decided;
    for (const master of ballot.reached) this.reached.add(master);
    return ballot;
  }

  private succeed(started: Instant, ttl: number, { fences }: Ballot): void {
    this.believe(started, ttl);
    this.fence = agree(0, fences, quorumOf(this.masters.length));
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
    for (const master of this.ballot?.reached ?? []) this.reached.add(master);
  }
}
