import { type Clock, elapsedSince, type Instant } from '../clock.js';
import { LinkedList, ListMember } from './linked-list.js';
import type { PassedLock } from './local-hand-off.js';
import type { QueueEntry } from './queue-entry.interface.js';
import type { Refusal } from './refusal.js';
import type { WakeReason } from './waiter.js';

/** The waiter or the holder of a resource. */
export interface Occupant {
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

/** A holder keeps its place in the queue, and is never woken. */
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

/**
 * A place waits until it is admitted: then it may contend, or holds the resource. It is refused if the masters have refused
 * its last attempt.
 */
type Standing = 'waiting' | 'admitted' | 'refused' | 'left';

/** The place of one acquisition in the queue of one resource. For a single resource, this is the whole entry. */
export class Place extends ListMember<Place> implements QueueEntry {
  standing: Standing = 'waiting';

  constructor(
    public occupant: Occupant,
    private readonly queue: ResourceQueue,
    readonly sharing: Sharing,
  ) {
    super();
  }

  get isAdmitted(): boolean {
    return this.standing === 'admitted' || this.standing === 'refused';
  }

  get isNext(): boolean {
    return this.queue.next === this;
  }

  get refusal(): Refusal | undefined {
    return this.queue.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    this.queue.refusal = refusal;
  }

  noteRefusal(): void {
    this.queue.noteRefusal(this);
  }

  becomeHolder(): void {
    this.refusal = undefined;
    this.queue.becomeHolder(this);
  }

  passOn(lock: PassedLock): boolean {
    return this.after?.occupant.offer?.(lock) ?? false;
  }

  noteServed(now: Instant): void {
    this.queue.servedAt = now;
  }

  sinceServed(clock: Clock): number {
    const { servedAt } = this.queue;
    return servedAt ? elapsedSince(clock, servedAt) : Infinity;
  }

  leave(): void {
    if (this.standing !== 'left') this.queue.leave(this);
  }
}

/**
 * The holders of one resource and its waiters, in the order of their arrival. The first places are admitted: one, as many
 * as there are permits, or all shared ones behind a shared holder, and one exclusive request behind shared holders.
 */
export class ResourceQueue extends LinkedList<Place> {
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

  /** @param all the queues that are not empty, by their resource */
  constructor(
    private readonly resource: string,
    private readonly all: Map<string, ResourceQueue>,
  ) {
    super();
    all.set(resource, this);
  }

  join(occupant: Occupant, sharing: Sharing): Place {
    const place = new Place(occupant, this, sharing);
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
      if (place.occupant === HOLDER) this.holders--;
      this.forgetRefusal(place);
      if (this.lastAdmitted === place) this.lastAdmitted = place.before;
    }
    place.standing = 'left';
    this.remove(place);
    if (this.isEmpty) this.all.delete(this.resource);
    // Nothing changes for the others when a waiter behind them gives up.
    if (!isAdmitted) return;
    if (this.refused > 0) this.next?.occupant.wake();
    this.admitMore();
  }

  becomeHolder(place: Place): void {
    place.occupant = HOLDER;
    this.holders++;
    this.forgetRefusal(place);
    if (this.refused > 0) {
      // Shared holders may all have what this one has. Of others, the next one goes on to poll.
      if (place.sharing.isShared) for (const { occupant } of this.contenders) occupant.wake();
      else this.next?.occupant.wake();
    }
    this.admitMore();
  }

  noteRefusal(place: Place): void {
    if (place.standing !== 'admitted') return;
    place.standing = 'refused';
    this.refused++;
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

  /** Whether the next place may contend. */
  private mayAdmit({ sharing }: Place): boolean {
    const { admitted, holders, lastAdmitted } = this;
    if (this.refused > 0) return false;
    if (admitted < sharing.places) return true;
    if (lastAdmitted?.sharing.isShared !== true) return false;
    // An exclusive request behind shared holders asks the masters, so that it stands at the barriers for their next ones.
    return sharing.isShared ? holders > 0 : holders === admitted;
  }
}
