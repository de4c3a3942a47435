import { type Clock, elapsedSince, type Instant, type Timer } from './clock.js';
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
  /** Cuts short what this waiter is doing instead of pausing; called when it is stopped. */
  interrupt: (() => void) | undefined;

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
    this.interrupt?.();
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
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (delay !== undefined && delay < this.left) timer = this.clock.schedule(delay, resolve);
    });
    this.resume = undefined;
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

/** A place in the lines of some resources. */
export interface Place {
  /** Whether nobody is ahead of this place, in any of its lines. */
  readonly isFirst: boolean;
  /** What the masters said last to whoever contends at the head of these lines; `undefined` if it was granted. */
  refusal: Ballot | undefined;
  /** Gives the place up. Idempotent. */
  leave(): void;
}

interface Line {
  readonly waiters: Set<Waiter>;
  refusal: Ballot | undefined;
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
    const lines = resources.map((resource) => this.lineOf(resource));
    for (const line of lines) line.waiters.add(waiter);
    return {
      get isFirst() {
        return lines.every((line) => firstOf(line) === waiter);
      },
      get refusal() {
        return lines.find((line) => line.refusal)?.refusal;
      },
      set refusal(refusal: Ballot | undefined) {
        for (const line of lines) line.refusal = refusal;
      },
      leave: () => this.leave(resources, waiter),
    };
  }

  /** Whether nobody stands in any of the lines. */
  isEmpty(resources: readonly string[]): boolean {
    return !resources.some((resource) => this.lines.has(resource));
  }

  /** Tells all heads of lines that it is worth another try. */
  wakeAll(): void {
    for (const line of this.lines.values()) firstOf(line)?.wake();
  }

  /** Tells the head of a line that it is next. Returns false if nobody waits there. */
  call(resource: string): boolean {
    const first = firstOf(this.lines.get(resource));
    if (!first || first.hasEnded) return false;
    first.wake('next');
    return true;
  }

  /** Tells those at the head of the lines that it is worth another try. */
  wakeFirst(resources: readonly string[]): void {
    for (const resource of resources) firstOf(this.lines.get(resource))?.wake();
  }

  private lineOf(resource: string): Line {
    let line = this.lines.get(resource);
    if (!line) this.lines.set(resource, (line = { waiters: new Set(), refusal: undefined }));
    return line;
  }

  private leave(resources: readonly string[], waiter: Waiter): void {
    for (const resource of resources) {
      const line = this.lines.get(resource);
      if (!line) continue;
      const first = firstOf(line);
      line.waiters.delete(waiter);
      if (line.waiters.size === 0) this.lines.delete(resource);
      // Nothing has changed for the head when somebody behind it gives up.
      else if (first === waiter) firstOf(line)?.wake();
    }
  }
}

function firstOf(line: Line | undefined): Waiter | undefined {
  return line?.waiters.values().next().value;
}
