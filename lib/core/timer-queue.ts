import type { Timer } from './clock.js';

/** Callbacks that are due in the same millisecond, in the order in which they were scheduled. */
interface Slot {
  readonly due: number;
  first: QueuedTimer | undefined;
  last: QueuedTimer | undefined;
}

class QueuedTimer implements Timer {
  before: QueuedTimer | undefined;
  after: QueuedTimer | undefined;
  isRef = true;

  constructor(
    private readonly queue: TimerQueue,
    readonly callback: () => void,
    /** `undefined` once it has run or was cancelled. */
    public slot: Slot | undefined,
  ) {}

  cancel(): void {
    this.queue.cancel(this);
  }

  unref(): this {
    this.queue.unref(this);
    return this;
  }
}

/**
 * Any number of timers for one timer of the process: a lock has two or three, and there may be ten thousands of them.
 *
 * Adding and cancelling cost the same whatever the number of timers, but for the first in a millisecond, which is put in
 * its order by a binary heap.
 */
export class TimerQueue {
  private readonly slots = new Map<number, Slot>();
  /** A binary heap: the next one that is due comes first. Slots stay until their time, even when all was cancelled. */
  private readonly heap: Slot[] = [];
  private refs = 0;

  /** @param refsChanged told when the first timer comes, or the last one goes, that keeps the process alive */
  constructor(private readonly refsChanged: (keepsAlive: boolean) => void) {}

  /** Whether there is a timer that keeps the process alive. */
  get keepsAlive(): boolean {
    return this.refs > 0;
  }

  /** When the next timer is due; `undefined` if there is none. */
  get nextDue(): number | undefined {
    while (this.heap[0]?.first === undefined && this.heap.length > 0) this.dropFirst();
    return this.heap[0]?.due;
  }

  /** @param due a whole number of milliseconds */
  add(due: number, callback: () => void): Timer {
    const slot = this.slots.get(due) ?? this.open(due);
    const timer = new QueuedTimer(this, callback, slot);
    timer.before = slot.last;
    if (slot.last) slot.last.after = timer;
    else slot.first = timer;
    slot.last = timer;
    if (++this.refs === 1) this.refsChanged(true);
    return timer;
  }

  /** Runs what is due, in its order. */
  run(now: number): void {
    for (let due = this.nextDue; due !== undefined && due <= now; due = this.nextDue) {
      const timer = this.heap[0]?.first as QueuedTimer;
      this.cancel(timer);
      timer.callback();
    }
  }

  /** @internal */
  cancel(timer: QueuedTimer): void {
    const { slot, before, after } = timer;
    if (!slot) return;
    timer.slot = undefined;
    if (before) before.after = after;
    else slot.first = after;
    if (after) after.before = before;
    else slot.last = before;
    if (timer.isRef) this.release();
  }

  /** @internal */
  unref(timer: QueuedTimer): void {
    if (!timer.isRef) return;
    timer.isRef = false;
    if (timer.slot) this.release();
  }

  private release(): void {
    if (--this.refs === 0) this.refsChanged(false);
  }

  private open(due: number): Slot {
    const slot: Slot = { due, first: undefined, last: undefined };
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
