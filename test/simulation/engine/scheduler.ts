export interface Planned {
  cancel(): void;
}

class Event implements Planned {
  constructor(
    readonly at: number,
    readonly order: number,
    public action: (() => void) | undefined,
  ) {}

  cancel(): void {
    this.action = undefined;
  }
}

/**
 * The single queue of all events, in the order of virtual time. Events at the same moment happen in the order in which
 * they were planned.
 */
export class Scheduler {
  /** True time, in milliseconds. No machine knows it. */
  now = 0;
  steps = 0;
  /** Identifies one course of events. */
  fingerprint = 0x811c9dc5;
  private readonly heap: Event[] = [];
  private orders = 0;

  at(moment: number, action: () => void): Planned {
    const event = new Event(Math.max(moment, this.now), this.orders++, action);
    this.push(event);
    return event;
  }

  after(delay: number, action: () => void): Planned {
    return this.at(this.now + delay, action);
  }

  mark(value: number): void {
    this.fingerprint = Math.imul(this.fingerprint ^ (value | 0), 0x01000193) >>> 0;
  }

  /** Runs the next event. Returns `false` if there is none until `end`. */
  step(end: number): boolean {
    for (;;) {
      const event = this.heap[0];
      if (!event || event.at > end) return false;
      this.pop();
      if (!event.action) continue;
      this.now = event.at;
      this.steps++;
      this.mark(event.at * 1_000);
      event.action();
      return true;
    }
  }

  private push(event: Event): void {
    const { heap } = this;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[index] = heap[parent] as Event;
      index = parent;
    }
    heap[index] = event;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Event;
    const { length } = heap;
    if (length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[index] = heap[child] as Event;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
