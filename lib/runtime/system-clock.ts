import { AsyncResource } from 'node:async_hooks';
import type { Clock, Instant, Timer } from '../redlock/clock.js';
import { LinkedList, ListMember } from '../redlock/linked-list.js';

// Timers that are due in the same millisecond, in the order in which they were added.
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

  // Returns the callback if that is still to be called.
  take(): (() => void) | undefined {
    const { callback } = this;
    if (!callback) return undefined;
    this.callback = undefined;
    this.slot.remove(this);
    if (this.isRef) this.slot.queue.dropRef();
    return callback;
  }
}

// Any number of timers for one timer of the process: a lock has two or three, and there may be tens of thousands.
// Adding and cancelling take constant time, except for the first timer in a millisecond, which goes into a binary heap.
export class TimerQueue {
  private readonly slots = new Map<number, Slot>();
  // A binary heap with the earliest slot first. Slots stay until they come first, even if all timers are cancelled.
  private readonly heap: Slot[] = [];
  private refs = 0;

  // `refsChanged` is called when the first timer that keeps the process alive comes, or the last one goes.
  constructor(private readonly refsChanged: (keepsAlive: boolean) => void) {}

  get keepsAlive(): boolean {
    return this.refs > 0;
  }

  get nextDue(): number | undefined {
    while (this.heap[0]?.isEmpty) this.dropFirst();
    return this.heap[0]?.due;
  }

  // `due` in whole milliseconds.
  add(due: number, callback: () => void): Timer {
    const timer = new QueuedTimer(this.slots.get(due) ?? this.open(due), callback);
    if (++this.refs === 1) this.refsChanged(true);
    return timer;
  }

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

// Captured at load time: under the fake timers of a test, a call would wait for a turn that never comes.
const { setImmediate } = globalThis;
// Captured, too, because the global `performance` is a getter, and each lock reads the clocks several times.
const { setTimeout: ownTimeout, Date: OwnDate, performance: captured } = globalThis;
// In milliseconds.
// Protocol 3.3
const LONGEST_SLEEP = 1_000;
// In milliseconds: gradual corrections move a wall clock by less than this within a second.
const NOTICEABLE = 5;

// A timer of Node calls back in the asynchronous context that set it: with one for all, a job would begin in that of some
// request, and meet the locks that the request holds as its own. That of the import belongs to no request.
const ownContext = new AsyncResource('nestjs-redlock');

// Runs what belongs to no request.
export function apart(action: () => void): void {
  ownContext.runInAsyncScope(action);
}

// All timers share one Node timer.
export class SystemClock implements Clock {
  private readonly timers = new TimerQueue((keepsAlive) => this.keepAlive(keepsAlive));
  private handle: NodeJS.Timeout | undefined;
  private readonly wake = ownContext.bind(() => this.fire());
  private armedFor = Infinity;
  // Fake timers of a test forget what they have not run when they end.
  private armedBy = setTimeout;
  private readonly listeners: (() => void)[] = [];
  // How far the wall clock was ahead of the monotonic one at the last check, in milliseconds.
  private ahead = aheadOf(this.read());

  read(): Instant {
    return { monotonic: monotonic(), wall: Date.now() };
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  schedule(delay: number, callback: () => void, slack = 0, now?: Instant): Timer {
    const due = dueAt((now?.monotonic ?? monotonic()) + delay, slack);
    const timer = this.timers.add(due, callback);
    if (due < this.armedFor) this.arm(due, monotonic());
    else if (this.armedBy !== setTimeout) this.arm(this.timers.nextDue ?? due, monotonic());
    return timer;
  }

  afterInput(callback: () => void): void {
    // Timers run before the poll phase and immediates after it. Two turns guarantee one complete poll phase in between,
    // whatever phase this is called from.
    setImmediate(() => setImmediate(callback));
  }

  afterTurn(callback: () => void): void {
    setImmediate(callback);
  }

  private arm(due: number, now: number): void {
    clearTimeout(this.handle);
    this.armedFor = due;
    this.armedBy = setTimeout;
    // Node's timers stand still while the machine is suspended, so check the clocks every second.
    this.handle = setTimeout(this.wake, Math.min(Math.ceil(due - now), LONGEST_SLEEP));
    if (!this.timers.keepsAlive) this.handle.unref();
  }

  private fire(): void {
    this.armedFor = Infinity;
    this.handle = undefined;
    try {
      // Node measures from the beginning of a turn of the event loop, so its timer can fire early.
      this.timers.run(monotonic());
      this.noticeResume();
    } finally {
      const next = this.timers.nextDue;
      if (next !== undefined && next < this.armedFor) this.arm(next, monotonic());
    }
  }

  private noticeResume(): void {
    const ahead = aheadOf(this.read());
    const moved = Math.abs(ahead - this.ahead);
    this.ahead = ahead;
    if (moved > NOTICEABLE) for (const listener of this.listeners) listener();
  }

  private keepAlive(keepsAlive: boolean): void {
    if (keepsAlive) this.handle?.ref();
    else this.handle?.unref();
  }
}

// Fake timers of a test bring a clock of their own, and may leave some of the globals real.
function monotonic(): number {
  return (setTimeout === ownTimeout && Date === OwnDate ? captured : performance).now();
}

function aheadOf({ monotonic, wall }: Instant): number {
  return wall - monotonic;
}

// With slack, due times are rounded down to multiples of a power of two, so that several timers coincide.
function dueAt(moment: number, slack: number): number {
  if (slack < 2) return Math.ceil(moment);
  // The largest power of two within the slack.
  const grid = 2 ** (31 - Math.clz32(slack));
  return Math.floor(moment / grid) * grid;
}
