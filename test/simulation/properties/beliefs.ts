import { elapsedBetween, type Instant } from '../../../lib/core/clock.js';
import type { Lease } from '../../../lib/core/lease.js';
import { Tenure } from '../../../lib/core/tenure.js';
import { TenureSet } from '../../../lib/core/tenure-set.js';
import type { Endpoint } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** Less than that is no time to rely on: the library says so, too. In milliseconds. */
const LEAST = 1;
/** New masters vote no earlier than this after they have lost everything. In milliseconds. */
const EARLY_VOTE = 2_000;
/** So much before the end of its validity, a lock is looked at once more. In milliseconds. */
const NEAR_END = 1.2;
/** A loss is told by a timer, which has a resolution of a millisecond and is a little late. In milliseconds. */
const TOLD_WITHIN = 3;

/** The same where clocks were set or a machine was suspended: no timer of a holder sleeps longer than a second. */
export const TOLD_IN_TRUE_TIME = 1_000 + TOLD_WITHIN;
/** Within that, a holder hears from the masters that its own clocks stood still. In milliseconds of true time. */
export const HEARD_WITHIN = 2_500;

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
  /** When that was seen, in true time. */
  seenAt: number;
  /** How long it is valid from `since` on, as seen last. */
  validity: number;
  /** The same before a process shortened it because its clock lagged. */
  fullValidity: number;
  /** Since when the process could know that its validity has ended, in true time. */
  overdueSince: number | undefined;
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
  private readonly tokens = new Set<string>();
  private readonly scheduler;
  private readonly endpoints;
  private readonly assumptions;

  constructor(private readonly world: World) {
    ({ scheduler: this.scheduler, endpoints: this.endpoints, assumptions: this.assumptions } = world);
  }

  /** Whether this is what the keys of a lock hold that a process was given. */
  hasToken(token: string): boolean {
    return this.tokens.has(token);
  }

  /** A process was given a lock. Returns when its attempt began, in true time. */
  begin(holder: string, node: SimNode, resources: readonly string[]): number {
    const lease = node.redlock['held'].values.find((held) => !this.seen.has(held) && held.resources === resources);
    if (!lease) return this.scheduler.now;
    this.seen.add(lease);
    const tenures = tenuresOf(lease);
    const since = lease['tenure'].validSince;
    for (const tenure of tenures) this.tokens.add(tenure['token']);
    const belief: Belief = {
      ...{ holder, node, lease, tenures, since, shown: since },
      ...{ validity: validityOf(tenures), fullValidity: validityOf(tenures) },
      ...{ seenAt: this.scheduler.now, overdueSince: undefined, endedAt: undefined, overtakenBy: undefined },
    };
    this.overtake(belief);
    this.live.add(belief);
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
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
        belief.seenAt = this.scheduler.now;
        belief.validity = belief.fullValidity = validityOf(belief.tenures);
        if (lease['nextSince'] === belief.since) belief.shown = belief.since;
        if (believes(belief)) this.checkQuorum(belief, 'extended');
        this.watch(belief);
      } else if (validityOf(belief.tenures) < belief.validity - LEAST) {
        belief.validity = validityOf(belief.tenures);
        this.world.sometimes.reached('a client shortened its own leases');
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
      if (this.assumptions.isSick(belief.node) || !believes(belief)) continue;
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
    if (endedAt === undefined || this.assumptions.isSick(node) || !believes(belief)) return;
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

  /**
   * At once by the monotonic clock. A wall clock that jumps calls nobody back, but then, and after a suspension of the
   * machine, a second of true time is enough.
   */
  private checkTold(belief: Belief): void {
    const { tenures, node } = belief;
    const { now } = this.scheduler;
    if (!node.process.isRunning) return;
    const { monotonic, wall } = node.process.read();
    let [late, lateByAny] = [-Infinity, -Infinity];
    for (const part of tenures) {
      const { validSince: since } = part;
      const passed = monotonic - since.monotonic;
      late = Math.max(late, passed - part['validity']);
      lateByAny = Math.max(lateByAny, Math.max(passed, wall - since.wall) - part['validity']);
    }
    if (late > TOLD_WITHIN && node.process.runsSince <= now - TOLD_WITHIN) this.failTold(belief, late);
    if (lateByAny <= 0) belief.overdueSince = undefined;
    else {
      belief.overdueSince ??= now;
      const since = Math.max(belief.overdueSince, node.process.runsSince);
      if (now - since > TOLD_IN_TRUE_TIME / node.process.clocks.slowest) this.failTold(belief, now - since);
    }
    if (this.assumptions.isSick(node)) this.checkToldByMasters(belief);
  }

  /** Where clocks stood still, only the masters can tell how much time has passed. */
  private checkToldByMasters(belief: Belief): void {
    const { node, seenAt, fullValidity: validity } = belief;
    if (!this.assumptions.mastersAreFine || !node.settings.restartGuard) return;
    const late = this.scheduler.now - Math.max(seenAt + validity, node.process.runsSince);
    if (late > HEARD_WITHIN && believes(belief)) this.failTold(belief, late);
  }

  /** Time passes without anything that happens, too. */
  private lookAt(moment: number, node: SimNode): void {
    if (this.assumptions.mayBeSick(node)) this.scheduler.at(moment + LEAST, nothing);
  }

  private failTold({ holder }: Belief, late: number): never {
    return this.fail(
      'a loss is told in time',
      `${holder} was told nothing ${late.toFixed(1)} ms after its validity had ended`,
    );
  }

  private watch(belief: Belief): void {
    const { lease, node, since } = belief;
    this.lookAt(belief.seenAt + belief.validity + HEARD_WITHIN, node);
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
    if (this.assumptions.broken.size > 0 || this.assumptions.isSick(belief.node)) return;
    for (const tenure of belief.tenures) this.checkQuorumOf(tenure, belief, when);
  }

  private checkQuorumOf(tenure: Tenure, { node, shown, holder }: Belief, when: string): void {
    const { now } = this.scheduler;
    const began = now - elapsedBetween(shown, node.process.read()) / node.process.clocks.rate - 1;
    const { keys } = tenure['names'];
    const token = tenure['token'];
    // Two addresses may lead to one server.
    const servers = new Set<SimServer>();
    const holding = this.endpoints.filter(({ server, lostAt, movedAt, ...lost }) => {
      if (lostAt >= began || movedAt >= began) return true;
      if (server !== undefined && servers.has(server)) return false;
      if (when === 'granted' && node.settings.restartGuard && this.isTooEarly(lost, began)) return false;
      if (server !== undefined) servers.add(server);
      return keys.every((key) => server?.data.get(key) === token) || (server === undefined && lostAt < began);
    });
    if (holding.length > this.endpoints.length / 2) return;
    this.fail(
      'a believer has a quorum',
      `${holder} believes (${when}) with ${holding.length} of ${this.endpoints.length} masters: ` +
        (holding.map(({ name }) => name).join(', ') || 'none'),
    );
  }

  /** Whether a lock that was lost there could still be relied on. Where all are new, they vote early. */
  private isTooEarly(
    { lostLockAt, lostLockUntil }: Pick<Endpoint, 'lostLockAt' | 'lostLockUntil'>,
    at: number,
  ): boolean {
    const areAllNew = this.endpoints.every(({ mayBeYoung }) => mayBeYoung);
    return at < (areAllNew ? Math.min(lostLockUntil, lostLockAt + EARLY_VOTE) : lostLockUntil);
  }

  private fail(property: Violation['property'], message: string): never {
    throw new Violation(property, this.scheduler.now, message);
  }
}

function nothing(): void {
  // Everything is checked after every event.
}

function believes({ lease }: Belief): boolean {
  return !lease.isOver && lease.remaining >= LEAST;
}

function validityOf(tenures: readonly Tenure[]): number {
  return Math.min(...tenures.map((tenure) => tenure['validity']));
}

function tenuresOf(lease: Lease): readonly Tenure[] {
  const holding = lease['tenure'];
  const parts = holding instanceof TenureSet ? holding['parts'] : [holding];
  return parts.filter((part) => part instanceof Tenure);
}
