import type { LastAnswers } from './last-answers.js';
import type { Waiter } from './waiter.js';
import type { WakeCause } from '../operate/observer.js';
import { LinkedList, ListMember } from '../redlock/linked-list.js';
import type { Successor } from '../redlock/terms.js';

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
  // It stays in its queues until it leaves.
  becomeHolder(): void;
  // Of a holder, the call that has its turn after it, if it can take over a lock of this ttl.
  successorFor(ttl: number): Successor | undefined;
  // The lock has ended before it was used: it waits again, where it was.
  waitAgain(waiter: Waiter): void;
  // Idempotent.
  leave(): void;
}

interface Occupant {
  readonly hasEnded: boolean;
  wake(cause: WakeCause, master?: string): void;
  successorFor?(ttl: number): Successor | undefined;
}

export interface Capacity {
  readonly isShared: boolean;
  // How many may hold them at the same time: the permits, or 1 for a lock.
  readonly limit: number;
}

// A holder stays in the queue, and is never woken.
const HOLDER: Occupant = { hasEnded: true, wake: () => undefined };

// An admitted entry may contend, or holds the resource. A refused one is admitted, but the masters have refused it.
type EntryState = 'waiting' | 'admitted' | 'refused' | 'left';

interface Queue {
  readonly first: Entry | undefined;
  readonly contenders: readonly Entry[];
  join(occupant: Occupant, capacity: Capacity): Entry;
}

// Without empty ones, by their resource.
type Queues = Map<string, Queue>;

// For a single resource, this is the whole entry. Most locks have no waiter in their process: an entry that has always
// been alone is its own queue.
class Entry extends ListMember<Entry> implements QueueEntry, Queue {
  state: EntryState = 'waiting';

  constructor(
    public occupant: Occupant,
    readonly capacity: Capacity,
    readonly resource: string,
    readonly queues: Queues,
    // Absent for an entry that has always been alone.
    public queue?: ResourceQueue,
  ) {
    super();
  }

  static first(occupant: Occupant, capacity: Capacity, resource: string, queues: Queues): Entry {
    const entry = new Entry(occupant, capacity, resource, queues);
    entry.state = 'admitted';
    queues.set(resource, entry);
    return entry;
  }

  join(occupant: Occupant, capacity: Capacity): Entry {
    return this.grown.join(occupant, capacity);
  }

  get first(): this {
    return this;
  }

  get contenders(): readonly Entry[] {
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

  successorFor(ttl: number): Successor | undefined {
    return this.queue?.isHeldByOne === true ? this.after?.occupant.successorFor?.(ttl) : undefined;
  }

  waitAgain(waiter: Occupant): void {
    this.occupant = waiter;
    this.queue?.noteUnused();
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

// The holders of one resource and its waiters, in the order of their arrival. The first entries are admitted: one, as
// many as there are permits, or all shared ones behind a shared holder, and an exclusive one behind them.
class ResourceQueue extends LinkedList<Entry> implements Queue {
  // Of an acquisition that was admitted.
  refusal: LastAnswers | undefined;
  private lastAdmitted: Entry | undefined;
  private admitted = 0;
  // Those of the admitted entries that hold the resource.
  private holders = 0;
  // Those of the admitted entries that the masters have refused. They go first.
  private refused = 0;

  private readonly resource: string;
  private readonly queues: Queues;

  constructor(alone: Entry) {
    super();
    this.resource = alone.resource;
    this.queues = alone.queues;
    this.queues.set(this.resource, this);
    this.add(alone);
    this.admit(alone);
    if (alone.isHolder) this.holders++;
  }

  join(occupant: Occupant, capacity: Capacity): Entry {
    const { resource, queues } = this;
    const entry = new Entry(occupant, capacity, resource, queues, this);
    this.add(entry);
    if (entry.before === this.lastAdmitted && this.mayAdmit(entry)) this.admit(entry);
    return entry;
  }

  get contenders(): readonly Entry[] {
    const contenders: Entry[] = [];
    for (let entry = this.first; entry?.isAdmitted === true; entry = entry.after) {
      if (!entry.occupant.hasEnded) contenders.push(entry);
    }
    return contenders;
  }

  leave(entry: Entry): void {
    const { isAdmitted } = entry;
    if (isAdmitted) {
      this.admitted--;
      if (entry.isHolder) this.holders--;
      this.forgetRefusal(entry);
      if (this.lastAdmitted === entry) this.lastAdmitted = entry.before;
    }
    this.remove(entry);
    if (this.isEmpty) this.queues.delete(this.resource);
    // Nothing changes for the others when a waiter behind them gives up.
    if (!isAdmitted) return;
    if (this.refused > 0) this.next?.occupant.wake('first');
    this.admitMore();
  }

  noteHolder(entry: Entry): void {
    this.holders++;
    this.forgetRefusal(entry);
    if (this.refused > 0) {
      // Shared holders may all have what this one has. Of others, the next one goes on to poll.
      if (entry.capacity.isShared) for (const { occupant } of this.contenders) occupant.wake('shared');
      else this.next?.occupant.wake('first');
    }
    this.admitMore();
  }

  get isHeldByOne(): boolean {
    return this.admitted === 1;
  }

  // A holder is a waiter again.
  noteUnused(): void {
    this.holders--;
  }

  noteRefusal(entry: Entry): void {
    if (entry.state !== 'admitted') return;
    entry.state = 'refused';
    this.refused++;
  }

  // The first one that may contend.
  get next(): Entry | undefined {
    let entry = this.first;
    while (entry?.isAdmitted === true && entry.occupant.hasEnded) entry = entry.after;
    return entry?.isAdmitted === true ? entry : undefined;
  }

  private forgetRefusal(entry: Entry): void {
    if (entry.state !== 'refused') return;
    entry.state = 'admitted';
    this.refused--;
  }

  private admitMore(): void {
    let next = this.lastAdmitted ? this.lastAdmitted.after : this.first; // @mutant last-come-first-served
    while (next && this.mayAdmit(next)) {
      this.admit(next);
      next.occupant.wake('admitted');
      next = next.after;
    }
  }

  private admit(entry: Entry): void {
    entry.state = 'admitted';
    this.lastAdmitted = entry;
    this.admitted++;
  }

  // Protocol 11.8
  private mayAdmit({ capacity }: Entry): boolean {
    const { admitted, holders, lastAdmitted } = this;
    if (this.refused > 0) return false;
    if (admitted < capacity.limit) return true;
    if (lastAdmitted?.capacity.isShared !== true) return false;
    // An exclusive request behind shared holders asks the masters, so that its writer key keeps out their next ones.
    return capacity.isShared ? holders > 0 && this.first?.capacity.isShared === true : holders === admitted;
  }
}

const ALONE: Capacity = Object.freeze({ isShared: false, limit: 1 });

class Entries implements QueueEntry {
  constructor(private readonly entries: readonly Entry[]) {}

  get isAdmitted(): boolean {
    return this.entries.every((entry) => entry.isAdmitted);
  }

  get isNext(): boolean {
    return this.entries.every((entry) => entry.isNext);
  }

  get refusal(): LastAnswers | undefined {
    return this.entries.find(({ refusal }) => refusal)?.refusal;
  }

  set refusal(refusal: LastAnswers | undefined) {
    for (const entry of this.entries) entry.refusal = refusal;
  }

  noteRefusal(): void {
    for (const entry of this.entries) entry.noteRefusal();
  }

  becomeHolder(): void {
    this.refusal = undefined;
    for (const entry of this.entries) entry.becomeHolder();
  }

  // Each of them may have another one.
  successorFor(): undefined {
    return undefined;
  }

  waitAgain(waiter: Waiter): void {
    for (const entry of this.entries) entry.waitAgain(waiter);
  }

  leave(): void {
    for (const entry of this.entries) entry.leave();
  }
}

// The holder of a resource stays in its queue until the lock has ended, so the waiters behind it cause no traffic at
// all. An acquisition of several resources joins all their queues at once. The order is therefore the same everywhere,
// and two acquisitions cannot deadlock.
export class WaitQueue {
  // Protocol 5.2
  private readonly queues: Queues = new Map();

  join(resources: readonly string[], waiter: Waiter, capacity: Capacity = ALONE): QueueEntry {
    const entries = resources.map((resource) => this.joinOne(resource, waiter, capacity));
    const [entry, another] = entries;
    return entry && !another ? entry : new Entries(entries);
  }

  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.queues.has(resource));
  }

  wakeAll(cause: WakeCause, master: string): void {
    for (const { contenders } of this.queues.values()) {
      for (const { occupant } of contenders) occupant.wake(cause, master);
    }
  }

  // `slot`: the permit that `master` has reserved. False if no waiter can use it.
  notify(resource: string, master: string, slot = 0): boolean {
    const [next, other] = this.queues.get(resource)?.contenders ?? [];
    if (!next) return false;
    const isUsable = slot < next.capacity.limit;
    next.occupant.wake(isUsable ? 'reserved' : 'dequeued', master);
    // The master has removed this process from its queue.
    other?.occupant.wake('dequeued', master);
    return isUsable;
  }

  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) {
      for (const { occupant } of this.queues.get(resource)?.contenders ?? []) occupant.wake('released');
    }
  }

  private joinOne(resource: string, waiter: Waiter, capacity: Capacity): Entry {
    const { queues } = this;
    return queues.get(resource)?.join(waiter, capacity) ?? Entry.first(waiter, capacity, resource, queues);
  }
}
