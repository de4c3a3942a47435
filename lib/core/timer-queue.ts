import type { Timer } from './clock.js';
import { LinkedList, Member } from './linked-list.js';

/** Timers that are due in the same millisecond, in the order in which they were scheduled. */
interface Slot {
  readonly due: number;
  readonly timers: LinkedList<QueuedTimer | undefined>;
}

/** Its own place in its slot: there may be as many as there are locks. */
class QueuedTimer extends Member<QueuedTimer | undefined> implements Timer {
  private isRef = true;
  private callback: (() => void) | undefined;

  constructor(
    { timers }: Slot,
    callback: () => void,
    private readonly queue: TimerQueue,
  ) {
    super(undefined, timers);
    this.value = this;
    this.callback = callback;
    timers.append(this);
  }

  cancel(): void {
    this.take();
  }

  unref(): this {
    if (this.isRef && this.callback) this.queue.dropRef();
    this.isRef = false;
    return this;
  }

  /** Takes the timer out of the queue, and its callback, if that was still to be called. */
  take(): (() => void) | undefined {
    const { callback } = this;
    if (!callback) return undefined;
    this.callback = undefined;
    this.leave();
    if (this.isRef) this.queue.dropRef();
    return callback;
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
    while (this.heap[0]?.timers.isEmpty) this.dropFirst();
    return this.heap[0]?.due;
  }

  /** @param due a whole number of milliseconds */
  add(due: number, callback: () => void): Timer {
    const timer = new QueuedTimer(this.slots.get(due) ?? this.open(due), callback, this);
    if (++this.refs === 1) this.refsChanged(true);
    return timer;
  }

  /** Runs what is due, in its order. */
  run(now: number): void {
    for (let due = this.nextDue; due !== undefined && due <= now; due = this.nextDue) {
      this.heap[0]?.timers.first?.take()?.();
    }
  }

  /** @internal */
  dropRef(): void {
    if (--this.refs === 0) this.refsChanged(false);
  }

  private open(due: number): Slot {
    const slot: Slot = { due, timers: new LinkedList() };
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
