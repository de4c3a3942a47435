import { NUL } from '../../../lib/settings/keyspace.js';
import type { Actor } from '../actor.js';
import type { SimNode } from '../node.js';
import { areRivals, isExclusive } from '../schedule.js';
import type { Database } from '../server/database.js';
import type { World } from '../world.js';
import { SharingHealth, VOTE_WITHIN, WOKEN_WITHIN } from './sharing-health.js';
import { Violation } from './violation.js';

/** How long a waiting process takes to subscribe and poll again, in milliseconds. */
const LISTENS_WITHIN = 1_500;
/**
 * How long a process may not be in the queue of the home master after that master granted what others held: the longest
 * pause after a failed attempt, and the attempt, in milliseconds.
 */
const BACK_OFF = 800;
/**
 * So many later calls may have their turn before a waiter: those of the time in which a process that is 600 ms away asks,
 * subscribes and joins the queue, if each holds the lock for 25 ms.
 */
const MOST_PASSES = 100;

/** Checks availability: a quarantine ends, and each release wakes one waiting process. */
export class Health {
  /** The processes that were woken since a resource was released. */
  private readonly woken = new Map<string, Set<string>>();
  /** When a lock on a resource was last released that the home master had not granted, in true time. */
  private readonly strayedAt = new Map<string, number>();
  /** How many later calls were served before each one that waits. */
  private readonly passes = new Map<Actor, number>();
  readonly sharing: SharingHealth;

  constructor(private readonly world: World) {
    this.sharing = new SharingHealth(world);
  }

  /** The longest that a master may wait, and that a lock may last, in milliseconds. */
  get longestTtl(): number {
    const { nodes, settings } = this.world;
    return Math.max(settings.maxTtl, ...nodes.map((node) => node.settings.maxTtl));
  }

  get longestUsedTtl(): number {
    const asked = this.world.actors.filter(({ askedAt }) => askedAt <= this.world.scheduler.now);
    return Math.max(0, ...asked.map(({ operation: { ttl, minHold, newTtl = 0 } }) => Math.max(ttl, minHold, newTtl)));
  }

  /** To be called when every quarantine must be over. */
  checkOver(): void {
    const { nodes, assumptions, scheduler } = this.world;
    for (const node of nodes) {
      if (!node.isThere || assumptions.isSick(node)) continue;
      for (const { master, state, reason } of node.redlock.masters.status().masters) {
        if (state !== 'quarantined') continue;
        const message = `${node.process.name} still keeps ${master} out: ${reason}`;
        throw new Violation('a quarantine ends', scheduler.now, message);
      }
    }
  }

  /**
   * A lock was released. If only one process waits for it, that process must be woken, whatever the order of its list.
   * Without faults, it need not poll.
   *
   * A process that takes over from another lock in the same process asks all masters at once, and may get a quorum
   * without the home master, which is reserved for another process. A process that asks the home master meanwhile
   * gets its grant but no quorum. It then tries again by itself, because no process queues for a key that is free.
   */
  noteRelease(released: Actor, slot: number | undefined): void {
    const { actors, schedule, scheduler } = this.world;
    const { resources, minHold } = released.operation;
    const isSharing = actors.some(
      (other) => !isExclusive(other.operation) && areRivals(other.operation, released.operation),
    );
    if (slot === undefined) for (const resource of resources) this.noteStray(resource, released.node);
    if (minHold > 0) return;
    if (isSharing) {
      if (resources.length === 1) this.sharing.noteRelease(released, slot);
      return;
    }
    if (!this.world.isQuiet || resources.length > 1 || !this.world.assumptions.ratesAreNormal) return;
    this.woken.set(resources[0] as string, new Set());
    const rivals = actors.filter((other) => other.isWaiting && other.operation.resources.some(isOneOf(resources)));
    const [waiter] = rivals;
    if (rivals.length !== 1 || !waiter || waiter.node === released.node) return;
    const { askedAt, operation } = waiter;
    const isKnown = schedule.servers.every((server) => server.isKnown);
    // A process may ask before it has opened its connections.
    const asksFrom = Math.max(askedAt, schedule.processes[operation.process]?.startsAt ?? 0);
    const isListening =
      scheduler.now - asksFrom > LISTENS_WITHIN && (isKnown || asksFrom > this.longestTtl + VOTE_WITHIN);
    if (!isListening || operation.resources.length > 1 || askedAt + operation.wait < scheduler.now + WOKEN_WITHIN)
      return;
    if (this.backsOff(waiter, resources[0] as string)) return;
    scheduler.after(WOKEN_WITHIN, () => {
      const others = actors.filter((other) => other !== waiter && other.operation.resources.some(isOneOf(resources)));
      if (!waiter.isWaiting || others.some((other) => other.askedAt > askedAt && other.askedAt < Infinity)) return;
      const message = `${waiter.name} still waits ${WOKEN_WITHIN} ms after the release by ${released.name}`;
      this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
    });
  }

  private noteStray(resource: string, node: SimNode): void {
    const owner = this.homeOf(resource, node)?.get(node.redlock['keyspace'].keyOf(resource));
    if (owner === undefined || !this.world.beliefs.hasToken(owner)) {
      this.strayedAt.set(resource, this.world.scheduler.now);
    }
  }

  /** Whether a process has left the queue because the home master granted what others held a moment ago. */
  private backsOff({ node }: Actor, resource: string): boolean {
    const strayed = this.strayedAt.get(resource) ?? -Infinity;
    if (this.world.scheduler.now - strayed >= BACK_OFF) return false;
    const [queue = ''] = node.redlock['keyspace'].namesOf([resource]).queues;
    return !this.homeOf(resource, node)?.hasMember(queue, node.redlock['waits'].listener);
  }

  /** The data of the home master of a resource. */
  private homeOf(resource: string, { redlock }: SimNode): Database | undefined {
    const home = redlock['homeMasters'].of(redlock['keyspace'].keyOf(resource))?.name;
    return this.world.endpoints.find(({ name }) => name === home)?.server?.data;
  }

  noteGrant(granted: Actor): void {
    const { actors, assumptions, scheduler } = this.world;
    const { operation, askedAt } = granted;
    for (const resource of operation.resources) this.woken.delete(resource);
    for (const other of actors) {
      const isPassed = other.isWaiting && other.askedAt < askedAt && areRivals(other.operation, operation);
      if (!isPassed || assumptions.isSick(other.node)) continue;
      const passes = (this.passes.get(other) ?? 0) + 1;
      this.passes.set(other, passes);
      if (passes <= MOST_PASSES) continue;
      const message = `${other.name} still waits after ${passes} calls that came later`;
      this.world.report(new Violation('no waiter is passed over for ever', scheduler.now, message));
    }
  }

  /** A waiting process receives a notification for a key. Only one process may, until it has the lock or gives it up. */
  noteNotification(process: string, key: string): void {
    const { actors, schedule, scheduler } = this.world;
    if (key.includes(NUL)) return;
    const resource = key.slice(key.lastIndexOf(':') + 1);
    const woken = this.woken.get(resource);
    if (!woken || schedule.operations.some(({ abortAfter }) => abortAfter !== undefined)) return;
    // While new masters begin to vote, processes learn of it at different times, and may queue on different masters.
    const areNew = schedule.servers.some(({ isKnown }) => !isKnown);
    if (areNew && scheduler.now < this.longestTtl + VOTE_WITHIN + LISTENS_WITHIN) return;
    woken.add(process);
    // Processes that want several resources wait for one of them at a time.
    const isOdd = actors.some(({ hasFailed, isWaiting, operation }) =>
      isWaiting ? operation.resources.length > 1 : hasFailed,
    );
    if (woken.size < 2 || isOdd) return;
    const message = `${woken.size} processes are woken for one release of ${resource}`;
    this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
  }
}

function isOneOf(names: readonly string[]): (name: string) => boolean {
  return (name) => names.includes(name);
}
