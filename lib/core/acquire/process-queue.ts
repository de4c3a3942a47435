import { elapsedBetween, type Instant } from '../clock.js';
import type { LeasedKeys } from './quorum-lock.js';
import type { Refusal } from './refusal.js';
import type { PlacesOnMasters } from './places.js';
import type { Waiter, WakeReason } from './waiter.js';
import { LinkedList, ListMember } from './linked-list.js';

/** A process keeps a lock for its own waiters for this many sections in a row at most. */
const MOST_SECTIONS = 5;
/** It passes a lock on no later than this many milliseconds after it has acquired it: other processes wait, too. */
const LONGEST_TENURE = 10;
/** The next holder has at least this share of the ttl left. */
const SHARE_LEFT = 0.8;

/** For how long a process has kept a lock for its own waiters. */
export interface Tenure {
  /** When the process acquired the lock. */
  readonly began: Instant;
  /** Number of sections so far, with the present one. */
  readonly sections: number;
}

/** A lock that its holder passes to the next waiter of the same process. */
export interface PassedLock extends Tenure {
  readonly leasedKeys: LeasedKeys;
  /** Milliseconds. */
  readonly ttl: number;
}

/**
 * Whether a holder may pass its lock to the next waiter of its process, which needs no round trip, or has to release it, so
 * that other processes get their turn.
 * Protocol 5.2.
 *
 * @see https://dl.acm.org/doi/10.1145/2145816.2145848 "Lock Cohorting", Dice, Marathe and Shavit, for the same bound
 *   between the cores of one machine
 */
export function mayPassOn({ leasedKeys, ttl, began, sections }: PassedLock, now: Instant): boolean {
  if (sections >= MOST_SECTIONS) return false;
  return elapsedBetween(began, now) < LONGEST_TENURE && leasedKeys.remainingAt(now) >= ttl * SHARE_LEFT;
}

/** One acquisition in the queues of its resources in this process, and then the lock that it has acquired. */
export interface QueueEntry {
  /** Whether its turn has come in all its queues. */
  readonly isAdmitted: boolean;
  /** Whether it is the first one of all its queues that may contend. */
  readonly isNext: boolean;
  /** The last refusal of an acquisition whose turn had come in these queues; `undefined` once one is granted. */
  refusal: Refusal | undefined;
  /** The masters have refused an attempt: those that come later do not contend until it is granted or given up. */
  noteRefusal(): void;
  /** The lock is granted. The entry keeps its places until it leaves. */
  becomeHolder(): void;
  /** The lock has ended before it was used: the entry waits again, in its places. */
  waitAgain(waiter: Waiter): void;
  /** The holder offers its lock to the next one in its only queue. Returns whether that takes it. */
  passOn(lock: PassedLock): boolean;
  /**
   * A waiter that gives up offers its places on the masters to the next one of its only queue that can take them, in front
   * of the first shared one. Returns whether one does.
   */
  passPlaces(places: PlacesOnMasters): boolean;
  /** The holder releases its lock after several sections of this process in a row: now it is the turn of others. */
  noteServed(now: Instant): void;
  /** Milliseconds since the last turn of this process that had several sections; `Infinity` if there was none. */
  sinceServed(now: Instant): number;
  /** Leaves all queues. Idempotent. */
  leave(): void;
}

/** The waiter or the holder of a resource. */
interface Occupant {
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
interface Queue {
  /** The waiters that may contend. */
  readonly contenders: readonly Place[];
  join(occupant: Occupant, sharing: Sharing): Place;
}

/** The queues that are not empty, by their resource. */
type Queues = Map<string, Queue>;

/**
 * The place of one acquisition in the queue of one resource. For a single resource, this is the whole entry.
 *
 * Most locks have no waiter in their process: a place that has always been alone is its own queue.
 */
class Place extends ListMember<Place> implements QueueEntry, Queue {
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
