import { type Clock, elapsedSince, type Instant, type Timer } from './clock.js';
import { LinkedList, type Member } from './linked-list.js';
import type { Ballot } from './quorum.js';

/** Why a waiter is woken: a master keeps a key for it, or something else has changed that is worth a look. */
export type Waking = 'next' | 'look';

/**
 * One acquisition that may have to wait.
 *
 * It is woken by whatever could change its situation, and looks for itself what has changed.
 */
export class Waiter {
  private readonly since: Instant;
  private readonly abort: (() => void) | undefined;
  private deadline: Timer | undefined;
  private stopped: { readonly reason: unknown } | undefined;
  private resume: (() => void) | undefined;
  private waking: Waking | undefined;
  private ended = false;
  /** Milliseconds that were spent in pauses; `undefined` unless somebody wants to know. */
  paused: number | undefined;
  /** Cuts short what this waiter is doing instead of pausing; called when it is stopped. */
  interrupt: { giveUp(): void } | undefined;

  constructor(
    private readonly clock: Clock,
    /** Milliseconds. */
    private readonly budget: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.since = clock.read();
    if (!signal) return;
    this.abort = () => this.stop(signal.reason);
    signal.addEventListener('abort', this.abort, { once: true });
  }

  /** Milliseconds since this waiter began. */
  get waited(): number {
    return elapsedSince(this.clock, this.since);
  }

  /** Milliseconds of the waiting budget that are left, never negative. */
  get left(): number {
    return Math.max(0, this.budget - this.waited);
  }

  /** Whether there is nothing left to wait for. */
  get isOver(): boolean {
    return this.left <= 0;
  }

  /** Whether this waiter waits no more. */
  get hasEnded(): boolean {
    return this.ended;
  }

  /** Whether waiting was stopped, by the signal or otherwise. */
  get isStopped(): boolean {
    return this.stopped !== undefined;
  }

  /** Lets a pause end now. If there is none, the next one does not start. */
  wake(why: Waking = 'look'): void {
    if (this.waking !== 'next') this.waking = why;
    this.resume?.();
  }

  /** Ends what this waiter is doing, and every later pause, by throwing `reason`. */
  stop(reason: unknown): void {
    this.stopped ??= { reason };
    this.interrupt?.giveUp();
    this.resume?.();
  }

  /** Throws if waiting was stopped. */
  check(): void {
    if (this.stopped) throw this.stopped.reason;
  }

  /**
   * Returns when somebody wakes this waiter, when `delay` milliseconds have passed, or when the budget has ended.
   *
   * @returns why somebody woke this waiter; `undefined` if nobody did
   * @throws what `stop` was given, or the signal's reason
   */
  async pause(delay?: number): Promise<Waking | undefined> {
    this.check();
    if (this.waking || this.isOver || delay === 0) return this.takeWakeUp();
    if (!this.deadline) this.awaitDeadline();
    let timer: Timer | undefined;
    const began = this.paused === undefined ? undefined : this.clock.read().monotonic;
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (delay !== undefined && delay < this.left) timer = this.clock.schedule(delay, resolve);
    });
    this.resume = undefined;
    if (began !== undefined) this.paused = (this.paused ?? 0) + this.clock.read().monotonic - began;
    timer?.cancel();
    this.check();
    return this.takeWakeUp();
  }

  private takeWakeUp(): Waking | undefined {
    const { waking } = this;
    this.waking = undefined;
    return waking;
  }

  private awaitDeadline(): void {
    // Timers may fire a fraction of a millisecond early, and a wait must not end early.
    this.deadline = this.clock.schedule(Math.ceil(this.left), () => (this.isOver ? this.wake() : this.awaitDeadline()));
  }

  /** Waiting is over, whatever came of it. */
  end(): void {
    this.ended = true;
    this.deadline?.cancel();
    if (this.abort) this.signal?.removeEventListener('abort', this.abort);
  }
}

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
  refusal: Ballot | undefined;

  constructor(readonly resource: string) {
    super();
  }
}

interface Stand {
  readonly line: Line;
  readonly member: Member<Standing>;
}

/** A place in the lines of some resources. */
export class Place {
  /** @internal */
  constructor(
    private readonly queue: WaitQueue,
    private readonly stands: readonly Stand[],
  ) {}

  /** Whether nobody is ahead of this place, in any of its lines. */
  get isFirst(): boolean {
    return this.stands.every(standsFirst);
  }

  /** What the masters said last to whoever contends at the head of these lines; `undefined` if it was granted. */
  get refusal(): Ballot | undefined {
    return this.stands.find(({ line }) => line.refusal)?.line.refusal;
  }

  set refusal(refusal: Ballot | undefined) {
    for (const { line } of this.stands) line.refusal = refusal;
  }

  /** What stood here has got what it wanted, and keeps the place until it leaves. */
  hold(): void {
    for (const { line, member } of this.stands) {
      line.refusal = undefined;
      member.value = HOLDER;
    }
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
      resources.map((resource) => this.stand(resource, waiter)),
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
  leave({ line, member }: Stand): void {
    if (member.hasLeft) return;
    const wasFirst = member.isFirst;
    member.leave();
    if (line.isEmpty) this.lines.delete(line.resource);
    // Nothing has changed for the head when somebody behind it gives up.
    else if (wasFirst) line.first?.wake();
  }

  private stand(resource: string, waiter: Waiter): Stand {
    const line = this.lineOf(resource);
    return { line, member: line.add(waiter) };
  }

  private lineOf(resource: string): Line {
    let line = this.lines.get(resource);
    if (!line) {
      line = new Line(resource);
      this.lines.set(resource, line);
    }
    return line;
  }
}

function standsFirst({ member }: Stand): boolean {
  return member.isFirst;
}
