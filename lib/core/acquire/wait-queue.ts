import { type Clock, elapsedSince, type Instant } from '../clock.js';
import { LinkedList, ListNode } from './linked-list.js';
import type { PassedLock } from './local-hand-off.js';
import type { Refusal } from './refusal.js';
import type { Waiter, WakeReason } from './waiter.js';

/** The waiter or the holder of a resource. */
interface Occupant {
  readonly hasEnded: boolean;
  wake(why?: WakeReason): void;
  /** Offers the lock of the holder before it. Returns whether it takes it. */
  offer?(lock: PassedLock): boolean;
}

/** How an acquisition shares its resources with others of this process. */
export interface Sharing {
  /** Whether it may hold them at the same time as other shared holders. */
  readonly isShared: boolean;
  /** How many may hold them at the same time: the permits, or 1 for a lock. */
  readonly places: number;
}

const ALONE: Sharing = Object.freeze({ isShared: false, places: 1 });
/** A holder keeps its place in the queue, and is never woken. */
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

/** The place of one acquisition in the queue of one resource. */
class Place extends ListNode<Occupant> {
  /** Whether it may contend, or holds the resource. */
  isAdmitted = false;
  /** Whether the masters have refused its last attempt. */
  isRefused = false;

  constructor(
    occupant: Occupant,
    readonly queue: ResourceQueue,
    readonly sharing: Sharing,
  ) {
    super(occupant, queue);
  }
}

/**
 * The holders of one resource and its waiters, in the order of their arrival. The first places are admitted: one, as many
 * as there are permits, or all shared ones behind a shared holder, and one exclusive request behind shared holders.
 */
class ResourceQueue extends LinkedList<Occupant> {
  /** The last refusal of an acquisition that was admitted. */
  refusal: Refusal | undefined;
  /** When this process has last released the resource after several sections in a row. */
  servedAt: Instant | undefined;
  private lastAdmitted: Place | undefined;
  private admitted = 0;
  /** Number of those among them that hold the resource. */
  private holders = 0;
  /** Number of those among them that the masters have refused. They go first. */
  private refused = 0;

  constructor(readonly resource: string) {
    super();
  }

  join(occupant: Occupant, sharing: Sharing): Place {
    const place = new Place(occupant, this, sharing);
    this.append(place);
    if (place.before === this.lastAdmitted && this.mayAdmit(place)) this.admit(place);
    return place;
  }

  /** The waiters that may contend. */
  get contenders(): readonly Place[] {
    const contenders: Place[] = [];
    for (let place = this.firstPlace; place?.isAdmitted === true; place = placeAfter(place)) {
      if (!place.value.hasEnded) contenders.push(place);
    }
    return contenders;
  }

  leave(place: Place): void {
    const { isAdmitted } = place;
    if (isAdmitted) {
      this.admitted--;
      if (place.value === HOLDER) this.holders--;
      this.setRefused(place, false);
      if (this.lastAdmitted === place) this.lastAdmitted = place.before as Place | undefined;
    }
    place.leave();
    // Nothing changes for the others when a waiter behind them gives up.
    if (!isAdmitted) return;
    if (this.refused > 0) this.next?.value.wake();
    this.admitMore();
  }

  becomeHolder(place: Place): void {
    place.value = HOLDER;
    this.holders++;
    this.setRefused(place, false);
    if (this.refused > 0) {
      // Shared holders may all have what this one has. Of others, the next one goes on to poll.
      if (place.sharing.isShared) for (const { value } of this.contenders) value.wake();
      else this.next?.value.wake();
    }
    this.admitMore();
  }

  /** Admits those whose turn has come, and wakes them. */
  private admitMore(): void {
    let next = this.lastAdmitted ? placeAfter(this.lastAdmitted) : this.firstPlace; // @mutant last-come-first-served
    while (next && this.mayAdmit(next)) {
      this.admit(next);
      next.value.wake();
      next = placeAfter(next);
    }
  }

  setRefused(place: Place, isRefused: boolean): void {
    if (place.isRefused !== isRefused) this.refused += isRefused ? 1 : -1;
    place.isRefused = isRefused;
  }

  /** The first one that may contend. */
  get next(): Place | undefined {
    let place = this.firstPlace;
    while (place?.isAdmitted === true && place.value.hasEnded) place = placeAfter(place);
    return place?.isAdmitted === true ? place : undefined;
  }

  private admit(place: Place): void {
    place.isAdmitted = true;
    this.lastAdmitted = place;
    this.admitted++;
  }

  /** Whether the next place may contend. */
  private mayAdmit({ sharing }: Place): boolean {
    const { admitted, holders, lastAdmitted } = this;
    if (this.refused > 0) return false;
    if (admitted < sharing.places) return true;
    if (lastAdmitted?.sharing.isShared !== true) return false;
    // An exclusive request behind shared holders asks the masters, so that it stands at the barriers for their next ones.
    return sharing.isShared ? holders > 0 : holders === admitted;
  }

  private get firstPlace(): Place | undefined {
    return this.firstNode as Place | undefined;
  }
}

/** One acquisition in the queues of its resources. */
export class QueueEntry {
  /** @internal */
  constructor(
    private readonly queue: WaitQueue,
    private readonly places: readonly Place[],
  ) {}

  /** Whether its turn has come in all its queues. */
  get isAdmitted(): boolean {
    return this.places.every(isAdmittedPlace);
  }

  /** Whether it is the first one of all its queues that may contend. */
  get isNext(): boolean {
    return this.places.every((place) => place.queue.next === place);
  }

  /** The last refusal of an acquisition whose turn had come in these queues; `undefined` once one is granted. */
  get refusal(): Refusal | undefined {
    return this.places.find(({ queue }) => queue.refusal)?.queue.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    for (const { queue } of this.places) queue.refusal = refusal;
  }

  /** The masters have refused an attempt: those that come later do not contend until it is granted or given up. */
  noteRefusal(): void {
    for (const place of this.places) place.queue.setRefused(place, true);
  }

  /** The lock is granted. The entry keeps its places until `leave`. */
  becomeHolder(): void {
    this.refusal = undefined;
    for (const place of this.places) place.queue.becomeHolder(place);
  }

  /** The holder offers its lock to the next one in its only queue. Returns whether that takes it. */
  passOn(lock: PassedLock): boolean {
    const [place, another] = this.places;
    if (!place || another) return false;
    return placeAfter(place)?.value.offer?.(lock) ?? false;
  }

  /** The holder releases its lock after several sections of this process in a row: now it is the turn of others. */
  noteServed(now: Instant): void {
    for (const { queue } of this.places) queue.servedAt = now;
  }

  /** Milliseconds since the last turn of this process that had several sections; `Infinity` if there was none. */
  sinceServed(clock: Clock): number {
    const [place, another] = this.places;
    const servedAt = another ? undefined : place?.queue.servedAt;
    return servedAt ? elapsedSince(clock, servedAt) : Infinity;
  }

  /** Leaves all queues. Idempotent. */
  leave(): void {
    for (const place of this.places) this.queue.leave(place);
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
  private readonly queues = new Map<string, ResourceQueue>();

  /** Joins the queues of all resources. */
  join(resources: readonly string[], waiter: Waiter, sharing: Sharing = ALONE): QueueEntry {
    return new QueueEntry(
      this,
      resources.map((resource) => this.queueFor(resource).join(waiter, sharing)),
    );
  }

  /** Whether the queues of all these resources are empty. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.queues.has(resource));
  }

  /** Wakes all that may contend for another attempt. */
  wakeAll(): void {
    for (const { contenders } of this.queues.values()) for (const { value } of contenders) value.wake();
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
    next.value.wake(isUsable ? 'next' : 'retry');
    // The master has removed this process from its queue.
    other?.value.wake();
    return isUsable;
  }

  /** Wakes those that may contend for these resources for another attempt. */
  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) for (const { value } of this.queues.get(resource)?.contenders ?? []) value.wake();
  }

  /** @internal */
  leave(place: Place): void {
    if (!place.list) return;
    const { queue } = place;
    queue.leave(place);
    if (queue.isEmpty) this.queues.delete(queue.resource);
  }

  private queueFor(resource: string): ResourceQueue {
    let queue = this.queues.get(resource);
    if (!queue) {
      queue = new ResourceQueue(resource);
      this.queues.set(resource, queue);
    }
    return queue;
  }
}

function isAdmittedPlace({ isAdmitted, list }: Place): boolean {
  return isAdmitted && list !== undefined;
}

function placeAfter(place: Place): Place | undefined {
  return place.after as Place | undefined;
}
