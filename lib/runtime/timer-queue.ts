import type { Timer } from '../core/clock.js';
import { LinkedList, ListMember } from '../core/acquire/linked-list.js';

/** Timers that are due in the same millisecond, in the order in which they were added. */
class Slot extends LinkedList<QueuedTimer> {
  constructor(
    readonly due: number,
    readonly queue: TimerQueue,
  ) {
    super();
  }
}

class QueuedTimer extends ListMember<QueuedTimer> implements Timer {
  private isRef = true;

  constructor(
    private readonly slot: Slot,
    private callback: (() => void) | undefined,
  ) {
    super();
    slot.add(this);
  }

  cancel(): void {
    this.take();
  }

  unref(): this {
    if (this.isRef && this.callback) this.slot.queue.dropRef();
    this.isRef = false;
    return this;
  }

  /** Removes the timer from the queue. Returns its callback if that is still to be called. */
  take(): (() => void) | undefined {
    const { callback } = this;
    if (!callback) return undefined;
    this.callback = undefined;
    this.slot.remove(this);
    if (this.isRef) this.slot.queue.dropRef();
    return callback;
  }
}

/**
 * Any number of timers for one timer of the process: a lock has two or three, and there may be tens of thousands.
 *
 * Adding and cancelling take constant time, except for the first timer in a millisecond, which a binary heap puts in
 * its order.
 */
export class TimerQueue {
  private readonly slots = new Map<number, Slot>();
  /** A binary heap with the earliest slot first. Slots stay until they come first, even if all timers are cancelled. */
  private readonly heap: Slot[] = [];
  private refs = 0;

  /** @param refsChanged called when the first timer that keeps the process alive comes, or the last one goes */
  constructor(private readonly refsChanged: (keepsAlive: boolean) => void) {}

  /** Whether any timer keeps the process alive. */
  get keepsAlive(): boolean {
    return this.refs > 0;
  }

  /** When the next timer is due; `undefined` if there is none. */
  get nextDue(): number | undefined {
    while (this.heap[0]?.isEmpty) this.dropFirst();
    return this.heap[0]?.due;
  }

  /** @param due time in whole milliseconds */
  add(due: number, callback: () => void): Timer {
    const timer = new QueuedTimer(this.slots.get(due) ?? this.open(due), callback);
    if (++this.refs === 1) this.refsChanged(true);
    return timer;
  }

  /** Runs the timers that are due, in their order. */
  run(now: number): void {
    for (let due = this.nextDue; due !== undefined && due <= now; due = this.nextDue) {
      this.heap[0]?.first?.take()?.();
    }
  }

  /** @internal */
  dropRef(): void {
    if (--this.refs === 0) this.refsChanged(false);
  }

  private open(due: number): Slot {
    const slot = new Slot(due, this);
    this.slots.set(due, slot);
    const { heap } = this;
    let at = heap.length;
    for (let parent = (at - 1) >> 1; at > 0 && (heap[parent] as Slot).due > due; parent = (at - 1) >> 1) {
      heap[at] = heap[parent] as Slot;
      at = parent;
    }
    heap[at] = slot;
    return slot;
  }

  private dropFirst(): void {
    const { heap } = this;
    this.slots.delete((heap[0] as Slot).due);
    const last = heap.pop() as Slot;
    if (heap.length === 0) return;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if ((heap[child + 1]?.due ?? Infinity) < (heap[child] as Slot).due) child++;
      if ((heap[child] as Slot).due >= last.due) break;
      heap[at] = heap[child] as Slot;
      at = child;
    }
    heap[at] = last;
  }
}
