import { elapsedBetween, type Instant } from '../../../lib/redlock/clock.js';
import type { SimInstant } from '../engine/machine-clock.js';
import type { Lease } from '../../../lib/redlock/lease.js';
import { slotOf } from '../../../lib/locks/held-call.js';
import type { Mutex } from '../../../lib/redlock/mutex.js';
import type { Kind } from '../../../lib/kinds/kind.js';
import { sharedMember } from '../../../lib/memory/memory-database.js';
import type { Losses } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { Operation } from '../schedule.js';
import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** A shorter remaining time is not reliable, and the library reports it so, in milliseconds. */
const LEAST = 1;
/** How long before the end of its validity a lock is checked once more, in milliseconds. */
const NEAR_END = 1.2;
/** An acquisition is answered in time until then, in times of the limit for an answer, by a clock that may be slow. */
const ANSWERED_WITHIN = 1.2;
/** A timer with a resolution of a millisecond reports a loss, and is a little late, in milliseconds. */
const TOLD_WITHIN = 3;

/** The same after a clock was set or a machine was suspended: no timer of a holder sleeps longer than a second. */
export const TOLD_IN_TRUE_TIME = 1_000 + TOLD_WITHIN;

interface Belief {
  readonly holder: string;
  readonly node: SimNode;
  readonly lease: Lease;
  /** What it holds: resources, or a permit. */
  readonly claims: readonly string[];
  /** Whether other shared holders may have the same. */
  readonly isShared: boolean;
  readonly mutex: Mutex;
  since: Instant;
  /** When the round that confirmed it began. A shorter ttl takes effect at once and confirms nothing. */
  shown: Instant;
  /** Validity from `since` on, as last seen. */
  validity: number;
  /** Since when the process could have known that its validity has ended, in true time. */
  overdueSince: number | undefined;
  /** The error of the wall clock when the validity ended, before the holder was informed. */
  endedAt: number | undefined;
  /** The holder that was granted one of the resources after that. */
  overtakenBy: string | undefined;
  /** When its attempt began, in true time. */
  readonly began: number;
  /** When a majority of its masters had the keys of another holder, in true time, and which one. */
  lacked: { readonly at: number; readonly holder: string } | undefined;
}

/**
 * Tracks which process believes it holds which lock, and whether the belief is justified.
 *
 * It reads internals of the library, because the public interface reports a loss when it is called. A check must not
 * change the run.
 */
export class Beliefs {
  private readonly live = new Set<Belief>();
  private readonly seen = new Set<Lease>();
  private readonly tokens = new Set<string>();
  private readonly partial = new Set<Lease>();
  private readonly scheduler;
  private readonly assumptions;

  constructor(private readonly world: World) {
    ({ scheduler: this.scheduler, assumptions: this.assumptions } = world);
  }

  /** A fault is about to hit a master: from now on, a lock is kept if it is on all masters, and a majority is not hit. */
  noteFault(): void {
    for (const belief of this.live) {
      if (!this.isEverywhere(belief)) this.partial.add(belief.lease);
    }
  }

  /** Whether a lock was not on all masters when a fault hit one of them. */
  wasPartial(resources: readonly string[]): boolean {
    return [...this.partial].some((lease) => lease.resources === resources);
  }

  hasToken(token: string): boolean {
    return this.tokens.has(token);
  }

  /** Records that a process was granted a lock. Returns when its attempt began, in true time. */
  begin(holder: string, node: SimNode, operation: Operation): number {
    const { resources, mode, permits = Infinity } = operation;
    // The lease of another operation on the same resources may not be used yet.
    const lease = node.redlock['redlock'].held.members.find(
      (held) => held.isUsed && !this.seen.has(held) && held.resources === resources,
    );
    if (!lease) this.fail('no work starts on an ended lock', `${holder} starts, and its process holds nothing`);
    this.seen.add(lease);
    if (lease.passed) this.world.sometimes.reached('a lock was passed on in its process');
    const { mutex } = lease;
    const since = mutex.since;
    this.tokens.add(mutex.token);
    const slot = slotOf(lease);
    if (slot !== undefined && (slot < 0 || slot >= permits)) {
      this.fail('mutual exclusion', `${holder} holds permit ${slot}, and there are only ${permits}`);
    }
    const claims = slot === undefined ? resources : resources.map((resource) => `permit ${slot} of ${resource}`);
    const belief: Belief = {
      holder,
      ...{ node, lease, mutex, claims, isShared: mode === 'shared', since, shown: since },
      validity: validityOf(mutex),
      ...{ overdueSince: undefined, endedAt: undefined, overtakenBy: undefined },
      ...{ began: this.scheduler.now - elapsedBetween(since, node.process.read()) / node.process.clocks.rate },
      lacked: undefined,
    };
    // A fault came while it was acquired, and one more master had not granted it.
    const { hasHitMasters } = this.assumptions;
    const wasHit = (server: number): boolean => this.assumptions.wasHit(server);
    if (hasHitMasters && !this.isEverywhere(belief, wasHit)) this.partial.add(lease);
    this.overtake(belief);
    this.replace(belief);
    this.live.add(belief);
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
    if (believes(belief)) this.checkQuorum(belief, 'granted');
    else this.fail('no work starts on an ended lock', `${holder} starts, and its lock has ended`);
    this.watch(belief);
    return node.drawnFrom(mutex.token);
  }

  check(): void {
    for (const belief of this.live) {
      const { lease, node } = belief;
      if (lease.isOver || node.process.isDead) {
        this.live.delete(belief);
        continue;
      }
      const since = belief.mutex.since;
      if (since !== belief.since) {
        belief.since = since;
        belief.validity = validityOf(belief.mutex);
        if (!lease['round'] && !lease['retry']) {
          belief.shown = belief.since;
          this.checkReplaced(belief);
        }
        if (believes(belief)) this.checkQuorum(belief, 'extended');
        this.watch(belief);
      } else if (validityOf(belief.mutex) < belief.validity - LEAST) {
        belief.validity = validityOf(belief.mutex);
        this.watch(belief);
      }
      this.checkTold(belief);
      this.checkRevival(belief);
    }
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
  }

  /** An exclusive holder, or the holder of a permit, is alone. */
  private checkExclusion(): void {
    const holders = new Map<string, Belief>();
    for (const belief of this.live) {
      if (this.assumptions.isSick(belief.node) || !believes(belief)) continue;
      for (const claim of belief.claims) {
        const other = holders.get(claim);
        if (other !== undefined && !(other.isShared && belief.isShared)) {
          this.fail('mutual exclusion', `${nameOf(other)} and ${nameOf(belief)} both hold ${claim}`);
        }
        if (other !== undefined) this.world.sometimes.reached('several processes held a lock together');
        holders.set(claim, belief);
      }
    }
  }

  /** A belief must not return after the end of the validity, because another holder may have come and gone. */
  private checkRevival(belief: Belief): void {
    const { endedAt, overtakenBy, node, holder } = belief;
    if (endedAt === undefined || this.assumptions.isSick(node) || !believes(belief)) return;
    // If a wall clock was set forward and is then set back, the validity rightly becomes longer again.
    if (Math.abs(node.process.clocks.error - endedAt) > LEAST) return;
    if (overtakenBy !== undefined && this.assumptions.broken.size === 0) {
      this.fail('mutual exclusion', `${holder} believes again in what ${overtakenBy} had meanwhile`);
    }
    this.fail('a loss is reported in time', `${holder} believes again after its validity had ended`);
  }

  private overtake({ claims, holder, isShared }: Belief): void {
    for (const other of this.live) {
      const conflicts = other.claims.some((claim) => claims.includes(claim)) && !(isShared && other.isShared);
      if (conflicts && !believes(other)) other.overtakenBy ??= holder;
    }
  }

  /** From now on, the holders of whose masters a majority has the keys of this one must not be granted an extension. */
  private replace(belief: Belief): void {
    const { mutex, claims, holder, isShared } = belief;
    const keys = keysOf(mutex);
    const { now } = this.scheduler;
    for (const other of this.live) {
      const conflicts = other.claims.some((claim) => claims.includes(claim)) && !(isShared && other.isShared);
      // The acquisition may arrive at a minority of the masters after another holder has come and gone there.
      const isNew = now <= other.began + ANSWERED_WITHIN * other.node.settings.masterTimeout;
      if (!conflicts || isNew) continue;
      const servers = new Set(other.node.addresses.flatMap(({ server }) => server ?? []));
      const taken = [...servers].filter((server) => keys.every((key) => has(server, key, mutex.token, isShared)));
      if (taken.length <= other.node.addresses.length / 2) continue;
      this.world.sometimes.reached('another holder had a lock that was still relied on');
      other.lacked ??= { at: now, holder };
    }
  }

  /** A master that got earlier data back, or to which another address leads now, may show what was there before. */
  private checkReplaced({ lacked, holder, shown, node }: Belief): void {
    const { takenAt } = shown as Partial<SimInstant>;
    if (!lacked || takenAt === undefined || takenAt <= lacked.at || this.assumptions.isSick(node)) return;
    if (node.addresses.some(({ losses, movedAt }) => losses.at >= lacked.at || movedAt >= lacked.at)) return;
    const message = `${holder} is granted an extension, and ${lacked.holder} had the lock meanwhile`;
    this.fail('a holder is told of another one', message);
  }

  /**
   * The monotonic clock reports a loss at once. A jump of the wall clock wakes no timer, so after a jump or a
   * suspension of the machine, a second of true time is enough.
   */
  private checkTold(belief: Belief): void {
    const { mutex, node } = belief;
    const { now } = this.scheduler;
    if (!node.process.isRunning) return;
    const { monotonic, wall } = node.process.read();
    const { since } = mutex;
    const passed = monotonic - since.monotonic;
    const validity = mutex['validity'];
    const late = passed - validity;
    const lateByAny = Math.max(passed, wall - since.wall) - validity;
    if (late > TOLD_WITHIN && node.process.runsSince <= now - TOLD_WITHIN) this.failTold(belief, late);
    if (lateByAny <= 0) belief.overdueSince = undefined;
    else {
      belief.overdueSince ??= now;
      const since = Math.max(belief.overdueSince, node.process.runsSince);
      if (now - since > TOLD_IN_TRUE_TIME / node.process.clocks.slowest) this.failTold(belief, now - since);
    }
  }

  private failTold({ holder }: Belief, late: number): never {
    return this.fail(
      'a loss is reported in time',
      `${holder} was not notified ${late.toFixed(1)} ms after its validity had ended`,
    );
  }

  private watch(belief: Belief): void {
    const { lease, node, since } = belief;
    const left = (lease.remaining - NEAR_END) / node.process.clocks.rate;
    const end = lease.mutex.remaining / node.process.clocks.rate;
    this.scheduler.after(Math.max(0, end) + LEAST / 10, () => {
      if (belief.since !== since || lease.isOver || lease.mutex.remaining > 0) return;
      belief.endedAt = node.process.clocks.error;
    });
    if (left <= 0) return;
    this.scheduler.after(left, () => {
      if (belief.since === since && !node.process.isDead && believes(belief)) this.checkQuorum(belief, 'near its end');
    });
  }

  /**
   * A quorum of masters must hold the keys, counting masters that a fault has hit since the attempt began. A grant must
   * not rest on masters that had forgotten locks which could still have been valid. An extension may heal them, since
   * no other process can have had a quorum meanwhile.
   */
  private checkQuorum(belief: Belief, when: string): void {
    if (this.assumptions.broken.size > 0 || this.assumptions.isSick(belief.node)) return;
    const { mutex, node, shown, holder, isShared } = belief;
    const { now } = this.scheduler;
    const began = now - elapsedBetween(shown, node.process.read()) / node.process.clocks.rate - 1;
    const keys = keysOf(mutex);
    const token = mutex.token;
    // Two addresses may lead to one server.
    const servers = new Set<SimServer>();
    const leasedKeys = node.addresses.filter(({ server, losses, movedAt }) => {
      if (losses.at >= began || movedAt >= began) return true;
      if (server !== undefined && servers.has(server)) return false;
      if (when === 'granted' && node.settings.restartGuard && this.isTooEarly(losses, began)) return false;
      if (server !== undefined) servers.add(server);
      const holds = (key: string): boolean => server !== undefined && has(server, key, token, isShared);
      return keys.every(holds) || (server === undefined && losses.at < began);
    });
    if (leasedKeys.length > node.addresses.length / 2) return;
    this.fail(
      'a believer has a quorum',
      `${holder} believes (${when}) with ${leasedKeys.length} of ${node.addresses.length} masters: ` +
        (leasedKeys.map(({ name }) => name).join(', ') || 'none'),
    );
  }

  private isEverywhere({ mutex, node, isShared }: Belief, isLeftOut = (_: number) => false): boolean {
    const keys = keysOf(mutex);
    const token = mutex.token;
    // A master whose keys were set again counts only after one more extension.
    const isSure = node.redlock.masters.all.every((master) => !mutex['unsure']?.has(master));
    return (
      isSure &&
      node.addresses.every(
        ({ index, server }) => isLeftOut(index) || (server && keys.every((key) => has(server, key, token, isShared))),
      )
    );
  }

  /** Whether a holder could still rely on a lock that was lost there. */
  private isTooEarly({ lockUntil }: Losses, at: number): boolean {
    return at < lockUntil;
  }

  private fail(property: Violation['property'], message: string): never {
    throw new Violation(property, this.scheduler.now, message);
  }
}

function has({ data }: SimServer, key: string, token: string, isShared: boolean): boolean {
  return isShared ? data.hasLiveMember(key, sharedMember(token)) : data.get(key) === token;
}

function believes({ lease }: Belief): boolean {
  return !lease.isOver && lease.remaining >= LEAST;
}

function nameOf({ holder, isShared }: Belief): string {
  return isShared ? `${holder} (shared)` : holder;
}

function validityOf(mutex: Mutex): number {
  return mutex['validity'];
}

function keysOf({ primitive }: Mutex): readonly string[] {
  return (primitive as Kind).names.keys;
}
