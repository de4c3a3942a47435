import { elapsedBetween, type Instant } from '../../../lib/core/clock.js';
import { driftOf } from '../../../lib/core/settings/settings.js';
import type { SimInstant } from '../engine/machine-clock.js';
import type { Lease } from '../../../lib/core/lease.js';
import { QuorumLock } from '../../../lib/core/acquire/quorum-lock.js';
import { sharedMember } from '../../../lib/memory/memory-database.js';
import { CompositeLock } from '../../../lib/core/acquire/composite-lock.js';
import type { Losses } from '../network/endpoint.js';
import type { SimNode } from '../node.js';
import type { Operation } from '../schedule.js';
import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** A shorter remaining time is not reliable, and the library reports it so, in milliseconds. */
const LEAST = 1;
/** New masters vote no earlier than this after they have lost everything, in milliseconds. */
const EARLY_VOTE = 2_000;
/** A lock that is so near its end may not outlast a question to the masters, in milliseconds. */
const ENDS_WITHIN = 60;
/** How long before the end of its validity a lock is checked once more, in milliseconds. */
const NEAR_END = 1.2;
/** How much more than its lag a process may subtract, in milliseconds: the uncertainty of one comparison of clocks. */
const SHORTENED_BY = 100;
/** A timer with a resolution of a millisecond reports a loss, and is a little late, in milliseconds. */
const TOLD_WITHIN = 3;

/** The same after a clock was set or a machine was suspended: no timer of a holder sleeps longer than a second. */
export const TOLD_IN_TRUE_TIME = 1_000 + TOLD_WITHIN;
/** Time within which a holder learns from the masters that its own clocks stood still, in milliseconds of true time. */
export const HEARD_WITHIN = 2_500;

/** A lock that a process was granted. */
interface Belief {
  readonly holder: string;
  readonly node: SimNode;
  readonly lease: Lease;
  /** What it holds: resources, or a permit. */
  readonly claims: readonly string[];
  /** Whether other shared holders may have the same. */
  readonly isShared: boolean;
  /** The quorum locks of its keys: several if the keys were taken one by one. */
  readonly quorumLocks: readonly QuorumLock[];
  since: Instant;
  /** When the round that confirmed it began. A shorter ttl takes effect at once and confirms nothing. */
  shown: Instant;
  /** The same in true time. */
  seenAt: number;
  /** Validity from `since` on, as last seen. */
  validity: number;
  /** The same before a process shortened it because its clock lagged. */
  fullValidity: number;
  /** Since when the process could have known that its validity has ended, in true time. */
  overdueSince: number | undefined;
  /** The error of the wall clock when the validity ended, before the holder was informed. */
  endedAt: number | undefined;
  /** The holder that was granted one of the resources after that. */
  overtakenBy: string | undefined;
  /** Whether the clocks of its process disagree. */
  isInDoubt: boolean;
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
  private readonly scheduler;
  private readonly endpoints;
  private readonly assumptions;

  constructor(private readonly world: World) {
    ({ scheduler: this.scheduler, endpoints: this.endpoints, assumptions: this.assumptions } = world);
  }

  /** Whether a lock that a process was granted has this token. */
  hasToken(token: string): boolean {
    return this.tokens.has(token);
  }

  /** Records that a process was granted a lock. Returns when its attempt began, in true time. */
  begin(holder: string, node: SimNode, operation: Operation): number {
    const { resources, mode, permits = Infinity } = operation;
    // The lease of another operation on the same resources may be in doubt, and unused.
    const lease = node.redlock['held'].members.find(
      (held) => held.isUsed && !this.seen.has(held) && held.resources === resources,
    );
    if (!lease) this.fail('no work starts on an ended lock', `${holder} starts, and its process holds nothing`);
    this.seen.add(lease);
    const quorumLocks = quorumLocksOf(lease);
    if (lease['tenure']) this.world.sometimes.reached('a holder passed its lock on to a waiter of its process');
    const since = readingOf(quorumLocks);
    for (const quorumLock of quorumLocks) this.tokens.add(quorumLock['token']);
    const { slot } = lease;
    if (slot !== undefined && (slot < 0 || slot >= permits)) {
      this.fail('mutual exclusion', `${holder} holds permit ${slot}, and there are only ${permits}`);
    }
    const claims = slot === undefined ? resources : resources.map((resource) => `permit ${slot} of ${resource}`);
    const belief: Belief = {
      holder,
      ...{ node, lease, quorumLocks, claims, isShared: mode === 'shared', since, shown: since },
      ...{ validity: validityOf(quorumLocks), ...this.grantOf(node, lease, quorumLocks) },
      ...{ overdueSince: undefined, endedAt: undefined, overtakenBy: undefined, isInDoubt: false },
    };
    this.overtake(belief);
    this.live.add(belief);
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
    if (believes(belief)) this.checkQuorum(belief, 'granted');
    else this.fail('no work starts on an ended lock', `${holder} starts, and its lock has ended`);
    this.watch(belief);
    return Math.max(...quorumLocks.map((quorumLock) => node.drawnFrom(quorumLock['token'])));
  }

  /** Runs after every event. */
  check(): void {
    for (const belief of this.live) {
      const { lease, node } = belief;
      this.noteDoubt(belief);
      if (lease.isOver || node.process.isDead) {
        this.checkStep(belief);
        this.live.delete(belief);
        continue;
      }
      const since = readingOf(belief.quorumLocks);
      if (since !== belief.since) {
        belief.since = since;
        belief.seenAt = this.takenAt(belief.since, node);
        belief.validity = belief.fullValidity = validityOf(belief.quorumLocks);
        if (!lease['round'] && !lease['retry']) belief.shown = belief.since;
        if (believes(belief)) this.checkQuorum(belief, 'extended');
        this.watch(belief);
      } else if (validityOf(belief.quorumLocks) < belief.validity - LEAST) {
        belief.validity = validityOf(belief.quorumLocks);
        this.world.sometimes.reached('a client shortened its own leases');
        this.checkShortened(belief);
        this.watch(belief);
      }
      this.checkTold(belief);
      this.checkRevival(belief);
    }
    if (this.live.size > 1 && this.assumptions.broken.size === 0) this.checkExclusion();
  }

  /** The validity of a new lock, and since when it counts, whatever its process has subtracted before the work began. */
  private grantOf(
    node: SimNode,
    lease: Lease,
    quorumLocks: readonly QuorumLock[],
  ): Pick<Belief, 'seenAt' | 'fullValidity'> {
    const left = validityOf(quorumLocks);
    // What was passed on or collected one by one may have another ttl.
    if (lease['tenure'] || quorumLocks.length > 1) return { seenAt: this.scheduler.now, fullValidity: left };
    const ttl = lease['ttl'];
    const full = Math.floor(ttl - driftOf(lease.context.settings, ttl));
    if (left < full - LEAST) this.world.sometimes.reached('a process shortened a lock before its work began');
    return { seenAt: this.takenAt(readingOf(quorumLocks), node), fullValidity: Math.max(left, full) };
  }

  /**
   * When the turn was over in which a reading was taken, in true time. Of a reading that the library has corrected, that is
   * not known.
   */
  private takenAt({ takenAt }: Partial<SimInstant>, { process }: SimNode): number {
    return takenAt === undefined ? this.scheduler.now : process.endOfTurn(takenAt);
  }

  private noteDoubt(belief: Belief): void {
    const { lease } = belief;
    const isInDoubt = lease['doubt']?.resolved !== undefined;
    if (belief.isInDoubt && !isInDoubt) {
      if (believes(belief)) {
        this.world.sometimes.reached('a lock lasted through a doubt about the clocks');
        // The masters have shown that the validity had not ended. If another holder came meanwhile, it is broken all the same.
        if (belief.overtakenBy === undefined) belief.endedAt = undefined;
      }
      if (lease.loss?.cause === 'expired') this.world.sometimes.reached('a doubt about the clocks ended a lock');
    }
    belief.isInDoubt = isInDoubt;
  }

  /** Where wall clocks of clients are set and nothing else happens, no lock ends before its validity does. */
  private checkStep({ lease, node, holder, since, validity }: Belief): void {
    const { faults } = this.world.schedule;
    if (lease.loss?.cause !== 'expired' || !this.assumptions.ratesAreNormal) return;
    if (faults.length === 0 || !faults.every(({ kind }) => kind === 'wallJump')) return;
    const left = validity - (node.process.read().monotonic - since.monotonic);
    if (left <= ENDS_WITHIN) return;
    this.fail('a step of a wall clock costs no lock', `${holder} lost its lock ${left.toFixed(0)} ms before its end`);
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

  /** Several masters show one standstill, and each of them may be a little late to answer. */
  private checkShortened({ node, holder, fullValidity, validity }: Belief): void {
    const { faults } = this.world.schedule;
    // Clocks of masters that run faster show a standstill, too.
    if (!this.assumptions.ratesAreNormal || !faults.every(({ kind }) => kind === 'clientLag')) return;
    const behind = this.scheduler.now - node.process.clocks.read().monotonic;
    const shortened = fullValidity - validity;
    if (shortened <= behind + SHORTENED_BY) return;
    const message = `${holder} ends ${shortened.toFixed(0)} ms early, and its clocks are ${behind.toFixed(0)} ms behind`;
    this.fail('a standstill is subtracted once', message);
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

  /**
   * The monotonic clock reports a loss at once. A jump of the wall clock wakes no timer, so after a jump or a
   * suspension of the machine, a second of true time is enough.
   */
  private checkTold(belief: Belief): void {
    const { quorumLocks, node } = belief;
    const { now } = this.scheduler;
    if (!node.process.isRunning) return;
    const { monotonic, wall } = node.process.read();
    let [late, lateByAny] = [-Infinity, -Infinity];
    for (const part of quorumLocks) {
      const { validSince: since } = part;
      const passed = monotonic - since.monotonic;
      const validity = part['validity'];
      late = Math.max(late, passed - validity);
      lateByAny = Math.max(lateByAny, Math.max(passed, wall - since.wall) - validity);
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

  /** If its own clocks stood still, a process learns only from the masters how much time has passed. */
  private checkToldByMasters(belief: Belief): void {
    const { node, seenAt, fullValidity: validity } = belief;
    const { assumptions } = this;
    if (!assumptions.serversAreFine || !node.settings.restartGuard) return;
    const heardFrom = Math.max(node.process.runsSince, assumptions.quorumIsMetAt(node));
    const late = this.scheduler.now - Math.max(seenAt + validity, heardFrom);
    if (late > HEARD_WITHIN && believes(belief)) this.failTold(belief, late);
  }

  /** Plans an event, because time also passes when nothing else happens. */
  private lookAt(moment: number, node: SimNode): void {
    if (this.assumptions.mayBeSick(node)) this.scheduler.at(moment + LEAST, nothing);
  }

  private failTold({ holder }: Belief, late: number): never {
    return this.fail(
      'a loss is reported in time',
      `${holder} was not notified ${late.toFixed(1)} ms after its validity had ended`,
    );
  }

  private watch(belief: Belief): void {
    const { lease, node, since } = belief;
    this.lookAt(belief.seenAt + belief.validity + HEARD_WITHIN, node);
    const left = (lease.remaining - NEAR_END) / node.process.clocks.rate;
    const end = lease['keys'].remaining / node.process.clocks.rate;
    this.scheduler.after(Math.max(0, end) + LEAST / 10, () => {
      if (belief.since !== since || lease.isOver || lease['keys'].remaining > 0) return;
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
    for (const quorumLock of belief.quorumLocks) this.checkQuorumOf(quorumLock, belief, when);
  }

  private checkQuorumOf(quorumLock: QuorumLock, { node, shown, holder, isShared }: Belief, when: string): void {
    const { now } = this.scheduler;
    const began = now - elapsedBetween(shown, node.process.read()) / node.process.clocks.rate - 1;
    const { keys } = quorumLock['names'];
    const token = quorumLock['token'];
    // Two addresses may lead to one server.
    const servers = new Set<SimServer>();
    const leasedKeys = node.addresses.filter(({ server, losses, movedAt }) => {
      if (losses.at >= began || movedAt >= began) return true;
      if (server !== undefined && servers.has(server)) return false;
      if (when === 'granted' && node.settings.restartGuard && this.isTooEarly(losses, began)) return false;
      if (server !== undefined) servers.add(server);
      const holds = (key: string): boolean =>
        isShared ? (server?.data.hasLiveMember(key, sharedMember(token)) ?? false) : server?.data.get(key) === token;
      return keys.every(holds) || (server === undefined && losses.at < began);
    });
    if (leasedKeys.length > node.addresses.length / 2) return;
    this.fail(
      'a believer has a quorum',
      `${holder} believes (${when}) with ${leasedKeys.length} of ${node.addresses.length} masters: ` +
        (leasedKeys.map(({ name }) => name).join(', ') || 'none'),
    );
  }

  /** Whether a holder could still rely on a lock that was lost there. If all masters are new, they vote early. */
  private isTooEarly({ lockAt, lockUntil }: Losses, at: number): boolean {
    const areAllNew = this.endpoints.every(({ mayBeYoung }) => mayBeYoung);
    return at < (areAllNew ? Math.min(lockUntil, lockAt + EARLY_VOTE) : lockUntil);
  }

  private fail(property: Violation['property'], message: string): never {
    throw new Violation(property, this.scheduler.now, message);
  }
}

function nothing(): void {
  // The checks run after every event anyway.
}

function believes({ lease }: Belief): boolean {
  return !lease.isOver && lease.remaining >= LEAST;
}

function nameOf({ holder, isShared }: Belief): string {
  return isShared ? `${holder} (shared)` : holder;
}

function validityOf(quorumLocks: readonly QuorumLock[]): number {
  return Math.min(
    ...quorumLocks.map((part) => part['validity'] - (part['since'].monotonic - part.validSince.monotonic)),
  );
}

/** The reading of the clocks from which the validity counts, as it was taken. */
function readingOf([first]: readonly QuorumLock[]): Instant {
  return first!['since'];
}

function quorumLocksOf(lease: Lease): readonly QuorumLock[] {
  const leasedKeys = lease['keys'];
  const parts = leasedKeys instanceof CompositeLock ? leasedKeys['parts'] : [leasedKeys];
  return parts.filter((part) => part instanceof QuorumLock);
}
