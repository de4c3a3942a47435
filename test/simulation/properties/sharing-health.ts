import { sharedMember } from '../../../lib/memory/memory-database.js';
import type { Actor } from '../actor.js';
import { areRivals, areShared } from '../schedule.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** How much later than the longest ttl new masters may be known to vote, in milliseconds. */
export const VOTE_WITHIN = 1_000;
/** How long a waiting process takes to be woken, in milliseconds. */
export const WOKEN_WITHIN = 150;
/** How long a process takes to open its subscription, in milliseconds. */
const SUBSCRIBED_WITHIN = 400;
/** How long an exclusive request takes at most until it has the writer keys, without faults, in milliseconds. */
const DEFERS_WITHIN = 200;
/** How long a process takes at most to connect to masters without faults, in milliseconds. */
const CONNECTED_WITHIN = 200;

export class SharingHealth {
  constructor(private readonly world: World) {}

  /**
   * A lock or a permit was released. All shared requests that wait in the queue of the home master are woken if no other
   * request waits; so is a request that is the only one to wait.
   */
  noteRelease(released: Actor, slot = 0): void {
    const { actors, scheduler } = this.world;
    if (!this.isQuiet) return;
    const others = actors.filter((other) => other !== released && areRivals(other.operation, released.operation));
    const waiters = others.filter(({ isWaiting }) => isWaiting);
    const [first] = waiters;
    const isLock = released.operation.permits === undefined;
    if (!first || (isLock && others.some(({ isHolding }) => isHolding))) return;
    if (waiters.length > 1 && waiters.some(({ operation }) => operation.mode === undefined)) return;
    for (const waiter of waiters) {
      const { node, operation, askedAt } = waiter;
      if (node === released.node || operation.resources.length > 1 || !this.isListening(waiter)) continue;
      // A process that knows of fewer permits cannot use this one.
      if (!this.isQueued(waiter) || slot >= (operation.permits ?? 1)) continue;
      scheduler.after(WOKEN_WITHIN, () => {
        const isDisturbed = others.some(
          (other) => other.askedAt > askedAt && other.askedAt < Infinity && !areShared(other.operation, operation),
        );
        if (!waiter.isWaiting || isDisturbed) return;
        const message = `${waiter.name} still waits ${WOKEN_WITHIN} ms after the release by ${released.name}`;
        this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
      });
    }
  }

  /**
   * A lock was granted. Without faults, no shared request gets it that came after an exclusive one which has the
   * writer keys, because only shared holders have kept it from getting the lock.
   */
  noteOrder({ name, node, operation, askedAt }: Actor): void {
    const { actors, scheduler } = this.world;
    if (operation.mode !== 'shared' || !this.isQuiet) return;
    const exclusive = actors.filter(
      (other) =>
        other.operation.mode === undefined && areRivals(other.operation, operation) && other.askedAt < Infinity,
    );
    const [waiter] = exclusive;
    if (!waiter?.isWaiting || exclusive.length > 1 || waiter.node === node) return;
    const { resources, wait } = waiter.operation;
    const mayDefer = resources.length === 1 && wait > 0 && waiter.askedAt > this.votesAt(waiter);
    // It has them only once it is the first in its own process.
    const isFirst = !actors.some(
      (other) => other !== waiter && other.node === waiter.node && areRivals(other.operation, waiter.operation),
    );
    if (!mayDefer || !isFirst || askedAt < waiter.askedAt + DEFERS_WITHIN) return;
    const message = `${name} was served before ${waiter.name}, which had the writer keys`;
    this.world.report(new Violation('first come, first served', scheduler.now, message));
  }

  /** An exclusive request got nothing. The shared ones that only it has kept out are woken, whichever masters they wait at. */
  noteFailure(writer: Actor): void {
    const { actors, scheduler } = this.world;
    const { now } = scheduler;
    if (!this.isQuiet || writer.operation.mode === 'shared') return;
    const waiters = actors.filter((other) => other.isWaiting && areRivals(other.operation, writer.operation));
    for (const waiter of waiters) {
      const { operation, askedAt, name } = waiter;
      const others = actors.filter(
        (other) => other !== writer && areRivals(other.operation, operation) && !areShared(other.operation, operation),
      );
      const isKeptOut = others.some((other) => other.askedAt <= now && (!other.isDone || other.operation.minHold > 0));
      if (operation.mode !== 'shared' || isKeptOut || !this.isListening(waiter) || askedAt < this.votesAt(waiter))
        continue;
      scheduler.after(WOKEN_WITHIN, () => {
        if (!waiter.isWaiting || others.some((other) => other.askedAt >= now && other.askedAt < Infinity)) return;
        const message = `${name} still waits ${WOKEN_WITHIN} ms after ${writer.name} has given up`;
        this.world.report(new Violation('a waiter is notified of a release', scheduler.now, message));
      });
    }
  }

  private get isQuiet(): boolean {
    return this.world.isQuiet && this.world.assumptions.ratesAreNormal;
  }

  /** When masters surely vote for a process. */
  private votesAt({ node }: Actor): number {
    const { schedule, health } = this.world;
    const startedAt = schedule.processes[node.index]?.startsAt ?? 0;
    const isKnown = schedule.servers.every((server) => server.isKnown);
    return startedAt + (isKnown ? CONNECTED_WITHIN : health.longestTtl + VOTE_WITHIN);
  }

  /** Whether a process that is in the queue has waited for so long that it listens, and waits on. */
  private isListening({ askedAt, operation }: Actor): boolean {
    const { now } = this.world.scheduler;
    return now - askedAt > SUBSCRIBED_WITHIN && askedAt + operation.wait >= now + WOKEN_WITHIN;
  }

  /** Whether a process is in the queue of the home master. */
  private isQueued({ node, operation }: Actor): boolean {
    const keyspace = node.redlock['keyspace'];
    const { listener } = node.redlock['waits'];
    const [resource = ''] = operation.resources;
    const names = operation.permits === undefined ? keyspace.namesOf([resource]) : keyspace.namesOfSlots(resource, [0]);
    const home = node.redlock['homeMasters'].of(names.keys[0] as string)?.name;
    const data = this.world.endpoints.find(({ name }) => name === home)?.server?.data;
    const member = operation.mode === 'shared' ? sharedMember(listener) : listener;
    return data?.hasMember(names.queues[0] as string, member) ?? false;
  }
}
