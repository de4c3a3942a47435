import type { Instant } from '../clock.js';
import type { QueueEntry } from './queue-entry.interface.js';
import type { Refusal } from './refusal.js';
import { Place, type Queues, type Sharing } from './resource-queue.js';
import type { Waiter } from './waiter.js';

const ALONE: Sharing = Object.freeze({ isShared: false, places: 1 });

/** The places of one acquisition of several resources. */
class Places implements QueueEntry {
  constructor(private readonly places: readonly Place[]) {}

  get isAdmitted(): boolean {
    return this.places.every((place) => place.isAdmitted);
  }

  get isNext(): boolean {
    return this.places.every((place) => place.isNext);
  }

  get refusal(): Refusal | undefined {
    return this.places.find(({ refusal }) => refusal)?.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    for (const place of this.places) place.refusal = refusal;
  }

  noteRefusal(): void {
    for (const place of this.places) place.noteRefusal();
  }

  becomeHolder(): void {
    this.refusal = undefined;
    for (const place of this.places) place.becomeHolder();
  }

  waitAgain(waiter: Waiter): void {
    for (const place of this.places) place.waitAgain(waiter);
  }

  /** The next ones want other combinations of resources. */
  passOn(): boolean {
    return false;
  }

  /** As with {@link passOn}. */
  passPlaces(): boolean {
    return false;
  }

  noteServed(now: Instant): void {
    for (const place of this.places) place.noteServed(now);
  }

  /** The time since a turn is that of one resource. */
  sinceServed(): number {
    return Infinity;
  }

  leave(): void {
    for (const place of this.places) place.leave();
  }
}

/**
 * First come, first served within one process, with one queue per resource.
 *
 * The holder of a resource stays in its queue until the lock has ended, so the waiters behind it cause no traffic at all. An
 * acquisition of several resources joins all their queues at once. The order is therefore the same everywhere, and two
 * acquisitions cannot deadlock.
 */
export class WaitQueue {
  // Protocol 5.2
  private readonly queues: Queues = new Map();

  /** Joins the queues of all resources. */
  join(resources: readonly string[], waiter: Waiter, sharing: Sharing = ALONE): QueueEntry {
    const places = resources.map((resource) => this.joinOne(resource, waiter, sharing));
    const [place, another] = places;
    return place && !another ? place : new Places(places);
  }

  /** Whether the queues of all these resources are empty. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.queues.has(resource));
  }

  /** Wakes all that may contend for another attempt. */
  wakeAll(): void {
    for (const { contenders } of this.queues.values()) for (const { occupant } of contenders) occupant.wake();
  }

  /**
   * Wakes the next waiter of a queue because a master has notified this process.
   *
   * @param slot the permit that the master has reserved
   * @returns false if no waiter can use it
   */
  notify(resource: string, slot = 0): boolean {
    const [next, other] = this.queues.get(resource)?.contenders ?? [];
    if (!next) return false;
    const isUsable = slot < next.sharing.places;
    next.occupant.wake(isUsable ? 'next' : 'retry');
    // The master has removed this process from its queue.
    other?.occupant.wake();
    return isUsable;
  }

  /** Wakes those that may contend for these resources for another attempt. */
  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) {
      for (const { occupant } of this.queues.get(resource)?.contenders ?? []) occupant.wake();
    }
  }

  private joinOne(resource: string, waiter: Waiter, sharing: Sharing): Place {
    const { queues } = this;
    return queues.get(resource)?.join(waiter, sharing) ?? Place.first(waiter, sharing, resource, queues);
  }
}
