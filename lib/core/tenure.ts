import { type Clock, elapsedSince, type Instant } from './clock.js';
import type { AcquireRequest, ExtendRequest, Master, QueueTicket } from './master.interface.js';
import { Ballot } from './quorum.js';
import { driftOf, masterTimeoutFor, type Settings } from './settings.js';

/** What belongs to some resources on the masters. */
export interface KeyNames {
  /** Keys, sorted. */
  readonly keys: readonly string[];
  /** Queues of the keys, in the same order. */
  readonly queues: readonly string[];
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
    if (ballot.outcome === 'granted') this.believe(started, ttl);
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
    const first = await this.hold([gate], { ...this.acquisition(ttl), explain: true, queue: ticket }, timeout);
    if (first.outcome !== 'granted') return first;
    const ballot = await this.hold(this.masters, { ...this.acquisition(ttl), explain }, timeout, gate);
    if (ballot.outcome === 'granted') this.believe(started, ttl);
    return ballot;
  }

  /** Tries to give the keys a new life. It worked if the answer is true. */
  async extend(ttl: number): Promise<{ readonly extended: boolean; readonly ballot: Ballot }> {
    const started = this.clock.read();
    // A shorter ttl may take effect on the masters even if their answers never arrive.
    if (this.reliableFor(ttl) < this.remaining) this.believe(started, ttl);
    const timeout = Math.min(masterTimeoutFor(this.settings, ttl), Math.max(this.remaining, 0));
    const request = { op: 'extend', keys: this.names.keys, token: this.token, ttl, withdrawn: false } as const;
    const ballot = await this.hold(this.masters, { ...request }, timeout);
    // An answer that comes after the old validity counts for nothing: another holder may have come and gone.
    const extended = ballot.outcome === 'granted' && this.remaining > 0;
    if (extended) this.believe(started, ttl);
    return { extended, ballot };
  }

  /** Gives the keys up, wherever a request for them may have arrived. Resolves at a quorum; never rejects. */
  async release(keepFor: number): Promise<void> {
    this.released = true;
    this.withdraw();
    if (this.reached.size === 0) return;
    const ttl = Math.max(keepFor, this.life);
    const request = { op: 'release', ...this.names, token: this.token, keepFor, ttl } as const;
    await new Ballot([...this.reached], request, this.clock, this.settings.masterTimeout).decided;
  }

  /** Ends the round that is under way: whoever has not answered has not answered in time. */
  giveUp(): void {
    this.ballot?.giveUp();
  }

  private acquisition(ttl: number): Omit<AcquireRequest, 'explain'> {
    return { op: 'acquire', keys: this.names.keys, token: this.token, ttl, withdrawn: false };
  }

  private async hold(
    masters: readonly Master[],
    request: AcquireRequest | ExtendRequest,
    timeout: number,
    grantedBy?: Master,
  ): Promise<Ballot> {
    this.request = request;
    this.life = Math.max(this.life, request.ttl);
    this.ballot = new Ballot(masters, request, this.clock, timeout, grantedBy);
    const ballot = await this.ballot.decided;
    for (const master of ballot.reached) this.reached.add(master);
    return ballot;
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
