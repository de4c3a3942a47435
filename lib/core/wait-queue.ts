import { LinkedList, type Member } from './linked-list.js';
import type { Refusal } from './refusal.js';
import type { Waiter, Waking } from './waiter.js';

/** Who stands in a line: somebody who waits, or holds. */
interface Standing {
  readonly hasEnded: boolean;
  wake(why?: Waking): void;
}

/** Whoever holds stays at the head of the line, and has nothing to be woken for. */
const HOLDER: Standing = { hasEnded: true, wake: () => undefined };

/** Those who want one resource, in the order in which they came. */
class Line extends LinkedList<Standing> {
  /** What the masters said last to whoever contends at its head. */
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

  /** Whether nobody is ahead of this place, in any of its lines. */
  get isFirst(): boolean {
    return this.stands.every(standsFirst);
  }

  /** What the masters said last to whoever contends at the head of these lines; `undefined` if it was granted. */
  get refusal(): Refusal | undefined {
    return lineOf(this.stands.find((stand) => lineOf(stand)?.refusal))?.refusal;
  }

  set refusal(refusal: Refusal | undefined) {
    for (const stand of this.stands) {
      const line = lineOf(stand);
      if (line) line.refusal = refusal;
    }
  }

  /** What stood here has got what it wanted, and keeps the place until it leaves. */
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
 * First come, first served, inside one process: a line per resource.
 *
 * Whoever holds a resource stays at the head of its line until the hold has ended, so those behind it cost no traffic
 * at all. A place in several lines is taken in all of them at once: the order is the same everywhere, and no two
 * acquisitions can wait for each other.
 */
export class WaitQueue {
  private readonly lines = new Map<string, Line>();

  /** Joins the lines of all resources, at their ends. */
  join(resources: readonly string[], waiter: Waiter): Place {
    return new Place(
      this,
      resources.map((resource) => this.lineFor(resource).add(waiter)),
    );
  }

  /** Whether nobody stands in any of the lines. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.lines.has(resource));
  }

  /** Tells all heads of lines that it is worth another try. */
  wakeAll(): void {
    for (const { first } of this.lines.values()) first?.wake();
  }

  /** Tells the head of a line that it is next. Returns false if nobody waits there. */
  call(resource: string): boolean {
    const first = this.lines.get(resource)?.first;
    if (!first || first.hasEnded) return false;
    first.wake('next');
    return true;
  }

  /** Tells those at the head of the lines that it is worth another try. */
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
    // Nothing has changed for the head when somebody behind it gives up.
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
