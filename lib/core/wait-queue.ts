import { LinkedList, type Member } from './linked-list.js';
import type { Refusal } from './refusal.js';
import type { Waiter, Waking } from './waiter.js';

/** The occupant of a place in a line: a waiter or a holder. */
interface Standing {
  readonly hasEnded: boolean;
  wake(why?: Waking): void;
}

/** A holder stays at the head of the line and needs no wake-up. */
const HOLDER: Standing = { hasEnded: true, wake: () => undefined };

/** The holder of one resource and its waiters, in the order of their arrival. */
class Line extends LinkedList<Standing> {
  /** The last refusal of the acquisition at the head of the line. */
  refusal: Refusal | undefined;

  constructor(readonly resource: string) {
    super();
  }
}

/** A place in the lines of some resources. */
export class Place {
  /** @internal */
  constructor(
    private readonly queue: WaitQueue,
    private readonly stands: readonly Member<Standing>[],
  ) {}

  /** Whether this place is at the head of all its lines. */
  get isFirst(): boolean {
    return this.stands.every(standsFirst);
  }

  /** The last refusal of an acquisition at the head of these lines; `undefined` once it is granted. */
  get refusal(): Refusal | undefined {
    return lineOf(this.stands.find((stand) => lineOf(stand)?.refusal))?.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    for (const stand of this.stands) {
      const line = lineOf(stand);
      if (line) line.refusal = refusal;
    }
  }

  /** Marks the place as that of a holder: the lock is granted, and the place is kept until `leave`. */
  hold(): void {
    this.refusal = undefined;
    for (const stand of this.stands) stand.value = HOLDER;
  }

  /** Gives the place up. Idempotent. */
  leave(): void {
    for (const stand of this.stands) this.queue.leave(stand);
  }
}

/**
 * First come, first served within one process, with one line per resource.
 *
 * The holder of a resource stays at the head of its line until the lock has ended, so the waiters behind it cause no
 * traffic at all. A place in several lines is taken in all of them at once. The order is therefore the same everywhere,
 * and two acquisitions cannot deadlock.
 */
export class WaitQueue {
  private readonly lines = new Map<string, Line>();

  /** Joins the lines of all resources at their ends. */
  join(resources: readonly string[], waiter: Waiter): Place {
    return new Place(
      this,
      resources.map((resource) => this.lineFor(resource).add(waiter)),
    );
  }

  /** Whether the lines of all these resources are empty. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.lines.has(resource));
  }

  /** Wakes the heads of all lines for another attempt. */
  wakeAll(): void {
    for (const { first } of this.lines.values()) first?.wake();
  }

  /** Wakes the head of a line because it is next. Returns false if no waiter is there. */
  call(resource: string): boolean {
    const first = this.lines.get(resource)?.first;
    if (!first || first.hasEnded) return false;
    first.wake('next');
    return true;
  }

  /** Wakes the heads of the lines of these resources for another attempt. */
  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) this.lines.get(resource)?.first?.wake();
  }

  /** @internal */
  leave(stand: Member<Standing>): void {
    const line = lineOf(stand);
    if (!line) return;
    const wasFirst = stand.isFirst;
    stand.leave();
    if (line.isEmpty) this.lines.delete(line.resource);
    // Nothing changes for the head when a waiter behind it gives up.
    else if (wasFirst) line.first?.wake();
  }

  private lineFor(resource: string): Line {
    let line = this.lines.get(resource);
    if (!line) {
      line = new Line(resource);
      this.lines.set(resource, line);
    }
    return line;
  }
}

function standsFirst(stand: Member<Standing>): boolean {
  return stand.isFirst;
}

function lineOf(stand: Member<Standing> | undefined): Line | undefined {
  return stand?.list as Line | undefined;
}
