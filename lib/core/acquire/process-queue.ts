import { elapsedBetween, type Instant } from '../clock.js';
import type { PassedLock } from './leased-keys.js';
import type { LastAnswers } from './last-answers.js';
import type { RemoteWait } from './remote-wait.js';
import type { HeldByChain, Waiter, WakeReason } from './waiter.js';
import { LinkedList, ListMember } from './linked-list.js';

// A process keeps a lock for its own waiters for this many sections in a row at most.
const MAX_SECTIONS = 5;
// In milliseconds since the process acquired the lock: other processes wait, too.
const LONGEST_TENURE = 10;
// The next holder has at least this share of the ttl left.
const SHARE_LEFT = 0.8;

// To pass a lock on needs no round trip, but other processes have to get their turn.
// @see https://dl.acm.org/doi/10.1145/2145816.2145848 "Lock Cohorting", Dice, Marathe and Shavit, for the same bound
// between the cores of one machine
// Protocol 5.2
export function mayPassOn({ leasedKeys, ttl, began, sections }: PassedLock, now: Instant): boolean {
  if (sections >= MAX_SECTIONS) return false;
  return elapsedBetween(began, now) < LONGEST_TENURE && leasedKeys.remainingAt(now) >= ttl * SHARE_LEFT;
}

// One acquisition in the queues of its resources in this process, and then the lock that it has acquired.
export interface QueueEntry {
  // Its turn has come in all its queues.
  readonly isAdmitted: boolean;
  // It is the first one of all its queues that may contend.
  readonly isNext: boolean;
  // Of an acquisition whose turn had come in these queues; `undefined` once one is granted.
  refusal: LastAnswers | undefined;
  // Those that come later do not contend until this one is granted or given up.
  noteRefusal(): void;
  // The entry keeps its places until it leaves.
  becomeHolder(): void;
  // The lock has ended before it was used: the entry waits again, in its places.
  waitAgain(waiter: Waiter): void;
  // True if the next one in its only queue takes the lock.
  passOn(lock: PassedLock): boolean;
  // For a waiter that gives up. True if one of its only queue, in front of the first shared one, goes on in its place.
  passRemoteWait(remoteWait: RemoteWait): boolean;
  // After several sections of this process in a row: now it is the turn of others.
  recordTurn(now: Instant): void;
  // Milliseconds since the last turn of this process that had several sections; `Infinity` if there was none.
  sinceServed(now: Instant): number;
  // Idempotent.
  leave(): void;
}

interface Occupant {
  readonly hasEnded: boolean;
  // Of a nested call.
  readonly held?: HeldByChain | undefined;
  wake(why?: WakeReason): void;
  // True if it takes the lock of the holder before it.
  offer?(lock: PassedLock): boolean;
  // It has taken a lock that was offered, and does not hold it yet.
  readonly hasOffer?: boolean;
  // True if it goes on in the place of a waiter before it.
  offerRemoteWait?(remoteWait: RemoteWait): boolean;
}

export interface Capacity {
  readonly isShared: boolean;
  // How many may hold them at the same time: the permits, or 1 for a lock.
  readonly limit: number;
}

// A holder keeps its place in the queue, and is never woken.
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

// An admitted place may contend, or holds the resource. A refused one is admitted, but the masters have refused it.
type PlaceState = 'waiting' | 'admitted' | 'refused' | 'left';

interface Queue {
  readonly first: Place | undefined;
  readonly contenders: readonly Place[];
  join(occupant: Occupant, capacity: Capacity): Place;
}

// Without empty ones, by their resource.
type Queues = Map<string, Queue>;

// For a single resource, this is the whole entry. Most locks have no waiter in their process: a place that has always
// been alone is its own queue.
class Place extends ListMember<Place> implements QueueEntry, Queue {
  state: PlaceState = 'waiting';
  // All places of a call for several resources.
  siblings: readonly Place[] | undefined;

  constructor(
    public occupant: Occupant,
    readonly capacity: Capacity,
    readonly resource: string,
    readonly queues: Queues,
    // Absent for a place that has always been alone.
    public queue?: ResourceQueue,
  ) {
    super();
  }

  static first(occupant: Occupant, capacity: Capacity, resource: string, queues: Queues): Place {
    const place = new Place(occupant, capacity, resource, queues);
    place.state = 'admitted';
    queues.set(resource, place);
    return place;
  }

  join(occupant: Occupant, capacity: Capacity): Place {
    return this.grown.join(occupant, capacity);
  }

  get first(): this {
    return this;
  }

  get contenders(): readonly Place[] {
    return this.occupant.hasEnded ? [] : [this];
  }

  get isAdmitted(): boolean {
    return this.state === 'admitted' || this.state === 'refused';
  }

  get isNext(): boolean {
    return this.queue ? this.queue.next === this : !this.occupant.hasEnded;
  }

  get refusal(): LastAnswers | undefined {
    return this.queue?.refusal;
  }

  set refusal(refusal: LastAnswers | undefined) {
    if (refusal || this.queue) this.grown.refusal = refusal;
  }

  noteRefusal(): void {
    this.grown.noteRefusal(this);
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
    return next !== undefined && slot < next.capacity.limit && (next.occupant.offer?.(lock) ?? false);
  }

  passRemoteWait(remoteWait: RemoteWait): boolean {
    for (let place = this.after; place && !place.capacity.isShared; place = place.after) {
      if (place.occupant.offerRemoteWait?.(remoteWait)) return true;
    }
    return false;
  }

  recordTurn(now: Instant): void {
    if (this.queue) this.queue.servedAt = now;
  }

  sinceServed(now: Instant): number {
    const servedAt = this.queue?.servedAt;
    return servedAt ? elapsedBetween(servedAt, now) : Infinity;
  }

  leave(): void {
    if (this.state === 'left') return;
    if (this.queue) this.queue.leave(this);
    else this.queues.delete(this.resource);
    this.state = 'left';
  }

  get isHolder(): boolean {
    return this.occupant === HOLDER;
  }

  private get grown(): ResourceQueue {
    return (this.queue ??= new ResourceQueue(this));
  }
}

// The holders of one resource and its waiters, in the order of their arrival. The first places are admitted: one, as
// many as there are permits, or all shared ones behind a shared holder, and an exclusive one behind them.
class ResourceQueue extends LinkedList<Place> implements Queue {
  // Of an acquisition that was admitted.
  refusal: LastAnswers | undefined;
  // When this process last released the resource after several sections in a row.
  servedAt: Instant | undefined;
  private lastAdmitted: Place | undefined;
  private admitted = 0;
  // Those of the admitted places that hold the resource.
  private holders = 0;
  // Those of the admitted places that the masters have refused. They go first.
  private refused = 0;

  private readonly resource: string;
  private readonly queues: Queues;

  constructor(alone: Place) {
    super();
    this.resource = alone.resource;
    this.queues = alone.queues;
    this.queues.set(this.resource, this);
    this.add(alone);
    this.admit(alone);
    if (alone.isHolder) this.holders++;
  }

  join(occupant: Occupant, capacity: Capacity): Place {
    const { resource, queues } = this;
    const place = new Place(occupant, capacity, resource, queues, this);
    this.add(place);
    if (place.before === this.lastAdmitted && this.mayAdmit(place)) this.admit(place);
    return place;
  }

  // Goes ahead of the first of these that is no holder. If the turn of that one has come, both may contend.
  advance(place: Place, waiters: ReadonlySet<Place>): void {
    let next = place;
    while (next.before && waiters.has(next.before)) next = next.before;
    while (next.isHolder && next.after) next = next.after;
    if (next === place) return;
    if (this.lastAdmitted === place) this.lastAdmitted = place.before;
    this.remove(place);
    this.add(place, next);
    if (next.isAdmitted && !place.isAdmitted) this.admit(place);
    this.admitMore();
    place.occupant.wake();
    // One that has taken another resource alone, and waits for this one, gives it back.
    for (let passed: Place | undefined = next; passed?.isAdmitted === true; passed = passed.after) {
      if (passed.siblings) passed.occupant.wake();
    }
  }

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
      if (place.capacity.isShared) for (const { occupant } of this.contenders) occupant.wake();
      else this.next?.occupant.wake();
    }
    this.admitMore();
  }

  // A holder is a waiter again.
  noteUnused(): void {
    this.holders--;
  }

  noteRefusal(place: Place): void {
    if (place.state !== 'admitted') return;
    place.state = 'refused';
    this.refused++;
  }

  // Neither holds the resource nor is about to. `undefined` if it knows too few permits to be admitted.
  get nextWaiter(): Place | undefined {
    let place = this.first;
    while (place && (place.isHolder || place.occupant.hasOffer === true)) place = place.after;
    const isInTurn = place && (place.isAdmitted || this.admitted <= place.capacity.limit);
    return isInTurn ? place : undefined;
  }

  // The first one that may contend.
  get next(): Place | undefined {
    let place = this.first;
    while (place?.isAdmitted === true && place.occupant.hasEnded) place = place.after;
    return place?.isAdmitted === true ? place : undefined;
  }

  private forgetRefusal(place: Place): void {
    if (place.state !== 'refused') return;
    place.state = 'admitted';
    this.refused--;
  }

  private admitMore(): void {
    let next = this.lastAdmitted ? this.lastAdmitted.after : this.first; // @mutant last-come-first-served
    while (next && this.mayAdmit(next)) {
      this.admit(next);
      next.occupant.wake();
      next = next.after;
    }
  }

  private admit(place: Place): void {
    place.state = 'admitted';
    if (place.after?.isAdmitted !== true) this.lastAdmitted = place;
    this.admitted++;
  }

  // Protocol 11.8
  private mayAdmit({ capacity }: Place): boolean {
    const { admitted, holders, lastAdmitted } = this;
    if (this.refused > 0) return false;
    if (admitted < capacity.limit) return true;
    if (lastAdmitted?.capacity.isShared !== true) return false;
    // An exclusive request behind shared holders asks the masters, so that it stands at the barriers for their next ones.
    return capacity.isShared ? holders > 0 && this.first?.capacity.isShared === true : holders === admitted;
  }
}

const ALONE: Capacity = Object.freeze({ isShared: false, limit: 1 });

class Places implements QueueEntry {
  constructor(private readonly places: readonly Place[]) {
    for (const place of places) place.siblings = places;
  }

  get isAdmitted(): boolean {
    return this.places.every((place) => place.isAdmitted);
  }

  get isNext(): boolean {
    return this.places.every((place) => place.isNext);
  }

  get refusal(): LastAnswers | undefined {
    return this.places.find(({ refusal }) => refusal)?.refusal;
  }

  set refusal(refusal: LastAnswers | undefined) {
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

  // The next ones want other combinations of resources.
  passOn(): boolean {
    return false;
  }

  passRemoteWait(): boolean {
    return false;
  }

  recordTurn(now: Instant): void {
    for (const place of this.places) place.recordTurn(now);
  }

  // The time since a turn is that of one resource.
  sinceServed(): number {
    return Infinity;
  }

  leave(): void {
    for (const place of this.places) place.leave();
  }
}

// The holder of a resource stays in its queue until the lock has ended, so the waiters behind it cause no traffic at
// all. An acquisition of several resources joins all their queues at once. The order is therefore the same everywhere,
// and two acquisitions cannot deadlock.
export class WaitQueue {
  // Protocol 5.2
  private readonly queues: Queues = new Map();

  join(resources: readonly string[], waiter: Waiter, capacity: Capacity = ALONE): QueueEntry {
    const places = resources.map((resource) => this.joinOne(resource, waiter, capacity));
    const [place, another] = places;
    const entry = place && !another ? place : new Places(places);
    if (waiter.held) this.nest(places, waiter.held()); // @mutant nested-call-waits-for-its-own-chain
    return entry;
  }

  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.queues.has(resource));
  }

  wakeAll(): void {
    for (const { contenders } of this.queues.values()) for (const { occupant } of contenders) occupant.wake();
  }

  // `slot`: the permit that the master has reserved. False if no waiter can use it.
  notify(resource: string, slot = 0): boolean {
    const [next, other] = this.queues.get(resource)?.contenders ?? [];
    if (!next) return false;
    const isUsable = slot < next.capacity.limit;
    next.occupant.wake(isUsable ? 'next' : 'retry');
    // The master has removed this process from its queue.
    other?.occupant.wake();
    return isUsable;
  }

  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) {
      for (const { occupant } of this.queues.get(resource)?.contenders ?? []) occupant.wake();
    }
  }

  // A nested call goes ahead of those that wait for its chain to end: they wait for it anyway. Where one of them is nested
  // in a lock for which this call waits, maybe through others, those before that one wait for its chain from now on, too.
  private nest(places: readonly Place[], held: readonly string[]): void {
    const waiters = this.waitersFor(held);
    for (const place of places) place.queue?.advance(place, waiters);
    const wanted = new Set(places.map(({ resource }) => resource));
    // The nearest ones were found first.
    const nested = new Set([...waiters].filter(({ occupant }) => occupant.held).reverse());
    for (let count = -1; count !== nested.size;) {
      count = nested.size;
      for (const place of nested) {
        const outer = place.occupant.held?.() ?? [];
        const isWanted = outer.some((resource) => wanted.has(resource)); // @mutant nested-calls-judged-once
        if (!isWanted) continue;
        wanted.add(place.resource);
        nested.delete(place);
        place.queue?.advance(place, this.waitersFor(outer));
      }
    }
  }

  // Those that wait for these resources, themselves or through others. There may be holders among them.
  private waitersFor(resources: readonly string[]): ReadonlySet<Place> {
    const firstOf = (names: readonly string[]): Place[] => names.flatMap((name) => this.queues.get(name)?.first ?? []);
    const found = new Set(firstOf(resources));
    // Also over those that are added meanwhile.
    for (const place of found) {
      if (place.after) found.add(place.after);
      if (place.isHolder) continue;
      for (const other of place.siblings ?? []) found.add(other);
      for (const other of firstOf(place.occupant.held?.() ?? [])) found.add(other);
    }
    return found;
  }

  private joinOne(resource: string, waiter: Waiter, capacity: Capacity): Place {
    const { queues } = this;
    return queues.get(resource)?.join(waiter, capacity) ?? Place.first(waiter, capacity, resource, queues);
  }
}
