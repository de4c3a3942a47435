import { elapsedBetween, type Instant } from '../clock.js';
import { LinkedList, ListMember } from './linked-list.js';
import type { PassedLock } from './local-hand-off.js';
import type { QueueEntry } from './queue-entry.interface.js';
import type { Refusal } from './refusal.js';
import type { PlacesOnMasters } from './places-on-masters.js';
import type { WakeReason } from './waiter.js';

/** The waiter or the holder of a resource. */
export interface Occupant {
  readonly hasEnded: boolean;
  wake(why?: WakeReason): void;
  /** Offers the lock of the holder before it. Returns whether it takes it. */
  offer?(lock: PassedLock): boolean;
  /** Whether it has taken a lock that was offered, and does not hold it yet. */
  readonly hasOffer?: boolean;
  /** Offers the places on the masters of a waiter before it. Returns whether it takes them. */
  offerPlaces?(places: PlacesOnMasters): boolean;
}

/** How an acquisition shares its resources with others of this process. */
export interface Sharing {
  /** Whether it may hold them at the same time as other shared holders. */
  readonly isShared: boolean;
  /** How many may hold them at the same time: the permits, or 1 for a lock. */
  readonly places: number;
}

/** A holder keeps its place in the queue, and is never woken. */
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

/**
 * A place waits until it is admitted: then it may contend, or holds the resource. It is refused if the masters have refused
 * its last attempt.
 */
type Standing = 'waiting' | 'admitted' | 'refused' | 'left';

/** The queue of one resource. */
export interface Queue {
  /** The waiters that may contend. */
  readonly contenders: readonly Place[];
  join(occupant: Occupant, sharing: Sharing): Place;
}

/** The queues that are not empty, by their resource. */
export type Queues = Map<string, Queue>;

/**
 * The place of one acquisition in the queue of one resource. For a single resource, this is the whole entry.
 *
 * Most locks have no waiter in their process: a place that has always been alone is its own queue.
 */
export class Place extends ListMember<Place> implements QueueEntry, Queue {
  standing: Standing = 'waiting';

  constructor(
    public occupant: Occupant,
    readonly sharing: Sharing,
    readonly resource: string,
    readonly queues: Queues,
    /** The queue with other places; absent for a place that has always been alone. */
    private queue?: ResourceQueue,
  ) {
    super();
  }

  /** The first place in the queue of a resource. */
  static first(occupant: Occupant, sharing: Sharing, resource: string, queues: Queues): Place {
    const place = new Place(occupant, sharing, resource, queues);
    place.standing = 'admitted';
    queues.set(resource, place);
    return place;
  }

  join(occupant: Occupant, sharing: Sharing): Place {
    return this.shared.join(occupant, sharing);
  }

  get contenders(): readonly Place[] {
    return this.occupant.hasEnded ? [] : [this];
  }

  get isAdmitted(): boolean {
    return this.standing === 'admitted' || this.standing === 'refused';
  }

  get isNext(): boolean {
    return this.queue ? this.queue.next === this : !this.occupant.hasEnded;
  }

  get refusal(): Refusal | undefined {
    return this.queue?.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    if (refusal || this.queue) this.shared.refusal = refusal;
  }

  noteRefusal(): void {
    this.shared.noteRefusal(this);
  }

  becomeHolder(): void {
    this.refusal = undefined;
    this.occupant = HOLDER;
    this.queue?.noteHolder(this);
  }

  waitAgain(waiter: Occupant): void {
    this.occupant = waiter;
    this.queue?.noteUnused();
  }

  passOn(lock: PassedLock): boolean {
    const { slot = 0 } = lock.leasedKeys;
    const next = this.queue?.nextWaiter;
    return next !== undefined && slot < next.sharing.places && (next.occupant.offer?.(lock) ?? false);
  }

  passPlaces(places: PlacesOnMasters): boolean {
    for (let place = this.after; place && !place.sharing.isShared; place = place.after) {
      if (place.occupant.offerPlaces?.(places)) return true;
    }
    return false;
  }

  noteServed(now: Instant): void {
    if (this.queue) this.queue.servedAt = now;
  }

  sinceServed(now: Instant): number {
    const servedAt = this.queue?.servedAt;
    return servedAt ? elapsedBetween(servedAt, now) : Infinity;
  }

  leave(): void {
    if (this.standing === 'left') return;
    if (this.queue) this.queue.leave(this);
    else this.queues.delete(this.resource);
    this.standing = 'left';
  }

  get isHolder(): boolean {
    return this.occupant === HOLDER;
  }

  private get shared(): ResourceQueue {
    return (this.queue ??= new ResourceQueue(this));
  }
}

/**
 * The holders of one resource and its waiters, in the order of their arrival. The first places are admitted: one, as many
 * as there are permits, or all shared ones behind a shared holder, and one exclusive request behind shared holders.
 */
class ResourceQueue extends LinkedList<Place> implements Queue {
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

  private readonly resource: string;
  private readonly queues: Queues;

  /** @param alone the place that has been alone until now */
  constructor(alone: Place) {
    super();
    this.resource = alone.resource;
    this.queues = alone.queues;
    this.queues.set(this.resource, this);
    this.add(alone);
    this.admit(alone);
    if (alone.isHolder) this.holders++;
  }

  join(occupant: Occupant, sharing: Sharing): Place {
    const { resource, queues } = this;
    const place = new Place(occupant, sharing, resource, queues, this);
    this.add(place);
    if (place.before === this.lastAdmitted && this.mayAdmit(place)) this.admit(place);
    return place;
  }

  /** The waiters that may contend. */
  get contenders(): readonly Place[] {
    const contenders: Place[] = [];
    for (let place = this.first; place?.isAdmitted === true; place = place.after) {
      if (!place.occupant.hasEnded) contenders.push(place);
    }
    return contenders;
  }

  leave(place: Place): void {
    const { isAdmitted } = place;
    if (isAdmitted) {
      this.admitted--;
      if (place.isHolder) this.holders--;
      this.forgetRefusal(place);
      if (this.lastAdmitted === place) this.lastAdmitted = place.before;
    }
    this.remove(place);
    if (this.isEmpty) this.queues.delete(this.resource);
    // Nothing changes for the others when a waiter behind them gives up.
    if (!isAdmitted) return;
    if (this.refused > 0) this.next?.occupant.wake();
    this.admitMore();
  }

  noteHolder(place: Place): void {
    this.holders++;
    this.forgetRefusal(place);
    if (this.refused > 0) {
      // Shared holders may all have what this one has. Of others, the next one goes on to poll.
      if (place.sharing.isShared) for (const { occupant } of this.contenders) occupant.wake();
      else this.next?.occupant.wake();
    }
    this.admitMore();
  }

  /** A holder is a waiter again. */
  noteUnused(): void {
    this.holders--;
  }

  noteRefusal(place: Place): void {
    if (place.standing !== 'admitted') return;
    place.standing = 'refused';
    this.refused++;
  }

  /** The first one that neither holds the resource nor is about to, unless it knows too few permits to be admitted. */
  get nextWaiter(): Place | undefined {
    let place = this.first;
    while (place && (place.isHolder || place.occupant.hasOffer === true)) place = place.after;
    const isInTurn = place && (place.isAdmitted || this.admitted <= place.sharing.places);
    return isInTurn ? place : undefined;
  }

  /** The first one that may contend. */
  get next(): Place | undefined {
    let place = this.first;
    while (place?.isAdmitted === true && place.occupant.hasEnded) place = place.after;
    return place?.isAdmitted === true ? place : undefined;
  }

  private forgetRefusal(place: Place): void {
    if (place.standing !== 'refused') return;
    place.standing = 'admitted';
    this.refused--;
  }

  /** Admits those whose turn has come, and wakes them. */
  private admitMore(): void {
    let next = this.lastAdmitted ? this.lastAdmitted.after : this.first; // @mutant last-come-first-served
    while (next && this.mayAdmit(next)) {
      this.admit(next);
      next.occupant.wake();
      next = next.after;
    }
  }

  private admit(place: Place): void {
    place.standing = 'admitted';
    this.lastAdmitted = place;
    this.admitted++;
  }

  /** Whether the next place may contend. Protocol 11.8. */
  private mayAdmit({ sharing }: Place): boolean {
    const { admitted, holders, lastAdmitted } = this;
    if (this.refused > 0) return false;
    if (admitted < sharing.places) return true;
    if (lastAdmitted?.sharing.isShared !== true) return false;
    // An exclusive request behind shared holders asks the masters, so that it stands at the barriers for their next ones.
    return sharing.isShared ? holders > 0 : holders === admitted;
  }
}
