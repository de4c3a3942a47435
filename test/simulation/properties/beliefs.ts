import { elapsedBetween, type Instant } from '../../../lib/core/clock.js';
import type { Lease } from '../../../lib/core/lease.js';
import { Tenure } from '../../../lib/core/tenure.js';
import { TenureSet } from '../../../lib/core/tenure-set.js';
import type { Assumptions } from '../assumptions.js';
import type { Scheduler } from '../engine/scheduler.js';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import { Violation } from './violation.js';

/** Less than that is no time to rely on: the library says so, too. In milliseconds. */
const LEAST = 1;
/** So much before the end of its validity, a lock is looked at once more. In milliseconds. */
const NEAR_END = 1.2;
/** A loss is told by a timer, which has a resolution of a millisecond and is a little late. In milliseconds. */
const TOLD_WITHIN = 3;

/** A lock that a process was given. */
interface Belief {
  readonly holder: string;
  readonly node: SimNode;
  readonly lease: Lease;
  /** What its keys hold, several tokens if they were taken one by one. */
  readonly tenures: readonly Tenure[];
  since: Instant;
  /** When the round began that showed it: a shorter ttl is believed at once, and shows nothing. */
  shown: Instant;
  /** The error of the wall clock when the validity was seen to have ended, before anybody was told. */
  endedAt: number | undefined;
  /** Who was given one of the resources after that. */
  overtakenBy: string | undefined;
}

/**
 * Who believes to hold what, and whether that is true.
 *
 * Looks into the library, since its public face tells a loss when it is asked: a look must not change the run.
 */
export class Beliefs {
  private readonly live = new Set<Belief>();
  private readonly seen = new Set<Lease>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly endpoints: readonly Endpoint[],
    private readonly assumptions: Assumptions,
    /** Longest ttl of all; with the guard, what is older than that does not count for a master that lost its data. */
    private readonly trustedAfter: number,
  ) {}

  /** A process was given a lock. Returns when its attempt began, in true time. */
  begin(holder: string, node: SimNode, resources: readonly string[]): number {
    const lease = node.redlock['held'].values.find((held) => !this.seen.has(held) && held.resources === resources);
    if (!lease) return this.scheduler.now;
    this.seen.add(lease);
    const tenures = tenuresOf(lease);
    const since = lease['tenure'].validSince;
    const belief = { holder, node, lease, tenures, since, shown: since, endedAt: undefined, overtakenBy: undefined };
    this.overtake(belief);
    this.live.add(belief);
    if (believes(belief)) this.checkQuorum(belief, 'granted');
    this.watch(belief);
    return Math.max(...tenures.map((tenure) => node.drawnAt.get(tenure['token']) as number));
  }

  /** After everything that happens. */
  check(): void {
    for (const belief of this.live) {
      const { lease, node } = belief;
      if (lease.isOver || node.process.isDead) {
        this.live.delete(belief);
        continue;
      }
      if (lease['tenure'].validSince !== belief.since) {
        belief.since = lease['tenure'].validSince;
        if (!lease['extending']) belief.shown = belief.since;
        if (believes(belief)) this.checkQuorum(belief, 'extended');
        this.watch(belief);
      }
      this.checkTold(belief);
      this.checkRevival(belief);
    }
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
  }

  private checkExclusion(): void {
    const holders = new Map<string, string>();
    for (const belief of this.live) {
      if (!believes(belief)) continue;
      for (const resource of belief.lease.resources) {
        const other = holders.get(resource);
        if (other !== undefined) this.fail('mutual exclusion', `${other} and ${belief.holder} both hold ${resource}`);
        holders.set(resource, belief.holder);
      }
    }
  }

  /** What comes after the end of the validity counts for nothing: somebody else may have come and gone. */
  private checkRevival(belief: Belief): void {
    const { endedAt, overtakenBy, node, holder } = belief;
    if (endedAt === undefined || !believes(belief)) return;
    // Whoever sets back a wall clock that had been set forward makes a validity longer again, and rightly so.
    if (Math.abs(node.process.clocks.error - endedAt) > LEAST) return;
    if (overtakenBy !== undefined && this.assumptions.broken.size === 0) {
      this.fail('mutual exclusion', `${holder} believes again in what ${overtakenBy} had meanwhile`);
    }
    this.fail('a loss is told in time', `${holder} believes again after its validity had ended`);
  }

  private overtake({ lease, holder }: Belief): void {
    for (const other of this.live) {
      const shares = other.lease.resources.some((resource) => lease.resources.includes(resource));
      if (shares && !believes(other)) other.overtakenBy ??= holder;
    }
  }

  /** On time by the monotonic clock: a wall clock that jumps calls nobody back. */
  private checkTold({ tenures, node, holder }: Belief): void {
    if (!node.process.isRunning || node.process.runsSince > this.scheduler.now - TOLD_WITHIN) return;
    const { monotonic } = node.process.read();
    const late = Math.max(...tenures.map((part) => monotonic - part.validSince.monotonic - part['validity']));
    if (late > TOLD_WITHIN) {
      this.fail(
        'a loss is told in time',
        `${holder} was told nothing ${late.toFixed(1)} ms after its validity had ended`,
      );
    }
  }

  private watch(belief: Belief): void {
    const { lease, node, since } = belief;
    const left = (lease.remaining - NEAR_END) / node.process.clocks.rate;
    const end = lease['tenure'].remaining / node.process.clocks.rate;
    this.scheduler.after(Math.max(0, end) + LEAST / 10, () => {
      if (belief.since !== since || lease.isOver || lease['tenure'].remaining > 0) return;
      belief.endedAt = node.process.clocks.error;
    });
    if (left <= 0) return;
    this.scheduler.after(left, () => {
      if (belief.since === since && !node.process.isDead && believes(belief)) this.checkQuorum(belief, 'near its end');
    });
  }

  /**
   * A quorum of masters holds the keys, counting those that something has hit since the attempt began. A grant must not
   * rest on masters that had forgotten locks which could have lived until then; an extension may heal them, since nobody
   * else can have got a quorum meanwhile.
   */
  private checkQuorum(belief: Belief, when: string): void {
    if (this.assumptions.broken.size > 0) return;
    for (const tenure of belief.tenures) this.checkQuorumOf(tenure, belief, when);
  }

  private checkQuorumOf(tenure: Tenure, { node, shown, holder }: Belief, when: string): void {
    const { now } = this.scheduler;
    const began = now - elapsedBetween(shown, node.process.read()) / node.process.clocks.rate - 1;
    const { keys } = tenure['names'];
    const token = tenure['token'];
    const holding = this.endpoints.filter(({ server, lostAt }) => {
      if (lostAt >= began) return true;
      if (when === 'granted' && node.settings.restartGuard && lostAt + this.trustedAfter > began) return false;
      return keys.every((key) => server?.data.get(key) === token) || (server === undefined && lostAt < began);
    });
    if (holding.length > this.endpoints.length / 2) return;
    this.fail(
      'a believer has a quorum',
      `${holder} believes (${when}) with ${holding.length} of ${this.endpoints.length} masters: ` +
        (holding.map(({ name }) => name).join(', ') || 'none'),
    );
  }

  private fail(property: Violation['property'], message: string): never {
    throw new Violation(property, this.scheduler.now, message);
  }
}

function believes({ lease }: Belief): boolean {
  return !lease.isOver && lease.remaining >= LEAST;
}

function tenuresOf(lease: Lease): readonly Tenure[] {
  const holding = lease['tenure'];
  const parts = holding instanceof TenureSet ? holding['parts'] : [holding];
  return parts.filter((part) => part instanceof Tenure);
}
