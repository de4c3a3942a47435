import type { Clock } from './clock.js';
import { connectMasters } from './connect.js';
import {
  LockNotAcquiredError,
  LockServiceStoppedError,
  type LockError,
  type MasterReport,
  QuorumUnavailableError,
} from './errors.js';
import { type Inspection, summarize } from './inspection.js';
import { Lease } from './lease.js';
import { Lock } from './lock.js';
import type { Master } from './master.interface.js';
import type { Observer } from './observer.js';
import { askAll, type Ballot, quorumOf } from './quorum.js';
import type { Random } from './random.js';
import { type CallSettings, masterTimeoutFor, type Settings } from './settings.js';
import { Tenure } from './tenure.js';
import { type Place, Waiter, WaitQueue } from './wait-queue.js';
import { WatchedMaster } from './watched-master.js';

/** Bounds of the random delay between two attempts, in milliseconds. */
const FIRST_RETRY_WITHIN = 20;
const RETRY_WITHIN = 500;
/** Servers expire keys to the millisecond: come back one later. */
const EXPIRY_RESOLUTION = 1;

export type { Inspection } from './inspection.js';

/** What surrounds the algorithm. */
export interface Surroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
}

/**
 * Locks over N independent masters.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class Redlock {
  private readonly masters: readonly Master[];
  private readonly quorum: number;
  private readonly queue = new WaitQueue();
  private readonly waiting = new Map<Waiter, readonly string[]>();
  private readonly held = new Set<Lease>();
  private readonly releases = new Set<Promise<void>>();
  private stopped = false;
  private idle: (() => void) | undefined;

  constructor(
    masters: readonly Master[],
    private readonly settings: Settings,
    private readonly surroundings: Surroundings,
  ) {
    const { clock, observer } = surroundings;
    this.masters = masters.map((master) => new WatchedMaster(master, clock, settings.masterTimeout, observer));
    this.quorum = quorumOf(masters.length);
  }

  /** Opens the connections and does not wait for them. */
  open(): void {
    for (const master of this.masters) void master.connect();
  }

  /**
   * Opens the connections. Resolves when a quorum can vote, with what is wrong with the other masters.
   *
   * @throws {QuorumUnavailableError} if a quorum cannot vote within `timeout` milliseconds
   */
  connect(timeout: number): Promise<readonly MasterReport[]> {
    return connectMasters(this.masters, this.surroundings.clock, timeout);
  }

  /**
   * Takes all resources together, waiting for them within the budget.
   *
   * @throws {LockNotAcquiredError} somebody else held a resource until the budget had ended
   * @throws {QuorumUnavailableError} too few masters could vote until the budget had ended
   * @throws {LockServiceStoppedError} `stop` was called
   * @throws the reason of the signal, when it aborts
   */
  async acquire(resources: readonly string[], call: CallSettings): Promise<Lock> {
    call.signal?.throwIfAborted();
    if (this.stopped) throw new LockServiceStoppedError(resources);
    const waiter = new Waiter(this.surroundings.clock, call.wait, call.signal);
    // Whoever does not wait makes its one attempt past those who do.
    const place = call.wait > 0 || this.queue.isEmpty(resources) ? this.queue.join(resources, waiter) : undefined;
    this.waiting.set(waiter, resources);
    try {
      return await this.contend(resources, call, waiter, place);
    } catch (error) {
      place?.leave();
      throw error;
    } finally {
      this.waiting.delete(waiter);
      waiter.end();
      this.tellIfIdle();
    }
  }

  /** Asks all masters about a resource. */
  async inspect(resource: string): Promise<Inspection> {
    const { clock } = this.surroundings;
    const request = { op: 'inspect', keys: [this.keyOf(resource)] } as const;
    const masters = await askAll(this.masters, request, clock, this.settings.masterTimeout);
    return summarize(resource, masters);
  }

  /** Refuses new acquisitions from now on, and ends those that wait. Locks that are held are kept. */
  stop(): void {
    this.stopped = true;
    for (const [waiter, resources] of this.waiting) waiter.stop(new LockServiceStoppedError(resources));
  }

  /**
   * Waits until all locks have been released and nobody asks for one any more, at most `timeout` milliseconds; then
   * takes away what is left.
   */
  async drain(timeout: number): Promise<void> {
    if (!this.isIdle) {
      await new Promise<void>((resolve) => {
        const timer = this.surroundings.clock.schedule(timeout, resolve);
        this.idle = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    for (const lease of [...this.held]) lease.lose('shutdown');
  }

  /** Closes the connections. Releases under way get `masterTimeout` to arrive. */
  async close(): Promise<void> {
    await Promise.all(this.releases);
    await Promise.all(this.masters.map((master) => master.close()));
  }

  private async contend(
    resources: readonly string[],
    call: CallSettings,
    waiter: Waiter,
    place: Place | undefined,
  ): Promise<Lock> {
    const queued = place !== undefined && !place.isFirst;
    const full = masterTimeoutFor(this.settings, call.ttl);
    let refusal: Ballot | undefined;
    for (let attempt = 1; ; attempt++) {
      while (place && !place.isFirst && !waiter.isOver) await waiter.pause();
      waiter.check();
      // Whoever finds nobody ahead makes one attempt in full, however small its budget.
      const isGuaranteed = attempt === 1 && !queued;
      if (waiter.isOver && !isGuaranteed) throw this.failure(resources, call, refusal ?? place?.refusal);

      const tenure = this.newTenure(resources);
      const timeout = isGuaranteed ? full : Math.min(full, waiter.left);
      waiter.interrupt = () => tenure.giveUp();
      // A refusal of the first attempt is only worth explaining if no second one can follow.
      const ballot = await tenure.acquire(call.ttl, timeout, attempt > 1 || call.wait === 0);
      waiter.interrupt = undefined;
      if (ballot.outcome === 'granted' && tenure.remaining > 0 && !waiter.isStopped) {
        return this.hold(resources, call, tenure, place);
      }
      this.track(tenure.release(0));
      waiter.check();
      // An attempt that the deadline cut short says less than the one before.
      if (ballot.outcome === 'held' || timeout === full) {
        refusal = ballot;
        if (place) place.refusal = ballot;
      }
      await waiter.pause(this.delayAfter(attempt, ballot));
    }
  }

  private hold(resources: readonly string[], call: CallSettings, tenure: Tenure, place: Place | undefined): Lock {
    if (place) place.refusal = undefined;
    const lease = new Lease(resources, tenure, call, {
      ...this.surroundings,
      quorum: this.quorum,
      masters: this.masters.length,
      ended: (ended, released) => {
        this.held.delete(ended);
        this.track(released);
        if (place) place.leave();
        else this.queue.wakeFirst(resources);
        this.tellIfIdle();
      },
    });
    this.held.add(lease);
    return new Lock(lease, this.settings);
  }

  private get isIdle(): boolean {
    return this.held.size === 0 && this.waiting.size === 0;
  }

  private tellIfIdle(): void {
    if (this.isIdle) this.idle?.();
  }

  /** Remembers a release until it has been answered. */
  private track(released: Promise<void>): void {
    this.releases.add(released);
    void released.then(() => this.releases.delete(released));
  }

  /** Full jitter, growing and bounded; earlier if the keys could be free earlier. */
  private delayAfter(attempt: number, ballot: Ballot): number {
    const { freeAfter } = ballot;
    if (attempt === 1 && ballot.outcome === 'held' && freeAfter === undefined) return 0;
    const bound = Math.min(RETRY_WITHIN, FIRST_RETRY_WITHIN * 2 ** Math.min(attempt, 10));
    const random = Math.max(1, this.surroundings.random.fraction() * bound);
    return freeAfter === undefined ? random : Math.min(random, freeAfter + EXPIRY_RESOLUTION);
  }

  private failure(resources: readonly string[], call: CallSettings, refusal: Ballot | undefined): LockError {
    const report = refusal?.report ?? [];
    if (!refusal || refusal.outcome === 'held') {
      return new LockNotAcquiredError(resources, report, call.wait, refusal?.freeAfter);
    }
    const what = `lock ${resources.map((resource) => JSON.stringify(resource)).join(', ')}`;
    const intent = refusal.outcome === 'granted' ? `${what} before its validity has ended` : what;
    return new QuorumUnavailableError(intent, resources, report, this.quorum, this.masters.length);
  }

  private newTenure(resources: readonly string[]): Tenure {
    const { clock, random } = this.surroundings;
    const keys = resources.map((resource) => this.keyOf(resource)).sort();
    return new Tenure(this.masters, this.settings, clock, keys, random.token());
  }

  private keyOf(resource: string): string {
    return this.settings.keyPrefix + resource;
  }
}
