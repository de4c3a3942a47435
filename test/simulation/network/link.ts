import type { Chance } from '../engine/chance.js';
import type { Scheduler } from '../engine/scheduler.js';

export type Direction = 'out' | 'in';

/**
 * How long a delayed packet takes after the link is free, in milliseconds: a retransmission timer that has grown sends
 * it again.
 */
const RETRANSMITTED_WITHIN = 200;

export class Link {
  latency;
  private readonly blocks = { out: 0, in: 0 };
  private readonly waiting: { readonly direction: Direction; readonly send: () => void }[] = [];

  constructor(
    private readonly scheduler: Scheduler,
    private readonly chance: Chance,
    most: number,
  ) {
    this.latency = { least: 0.1, most };
  }

  isBlocked(direction: Direction): boolean {
    return this.blocks[direction] > 0;
  }

  delay(): number {
    return this.latency.least + this.chance.fraction() * (this.latency.most - this.latency.least);
  }

  whenFree(direction: Direction, send: () => void): void {
    this.waiting.push({ direction, send });
  }

  block(direction: Direction, milliseconds: number): void {
    this.blocks[direction]++;
    this.scheduler.after(milliseconds, () => this.unblock(direction));
  }

  private unblock(direction: Direction): void {
    if (--this.blocks[direction] > 0) return;
    const free = this.waiting.filter((waiting) => waiting.direction === direction);
    const blocked = this.waiting.filter((waiting) => waiting.direction !== direction);
    this.waiting.splice(0, this.waiting.length, ...blocked);
    for (const { send } of free) this.scheduler.after(this.chance.fraction() * RETRANSMITTED_WITHIN, send);
  }
}

/**
 * One direction of a connection. TCP keeps the order and loses nothing while the connection lives. A dropped packet is
 * therefore a delay: TCP sends it again.
 */
export class Pipe {
  private readonly queue: (() => void)[][] = [];
  private openAt = -1;
  private free = 0;
  private closed = false;
  private held = false;

  constructor(
    private readonly scheduler: Scheduler,
    private readonly link: Link,
    private readonly direction: Direction,
  ) {}

  get isBusy(): boolean {
    return this.queue.length > 0;
  }

  /** Messages that one turn sends travel together. */
  send(arrive: () => void): void {
    if (this.closed) return;
    const last = this.queue.at(-1);
    if (last && this.openAt === this.scheduler.steps) {
      last.push(arrive);
      return;
    }
    this.openAt = this.scheduler.steps;
    const segment = [arrive];
    this.queue.push(segment);
    if (!this.held) this.travel(segment);
  }

  /** Lets everything that is sent from now on arrive after a moment, in true time. */
  delayUntil(moment: number): void {
    this.free = Math.max(this.free, moment);
  }

  close(): void {
    this.closed = true;
    this.queue.length = 0;
  }

  private travel(segment: (() => void)[]): void {
    if (this.link.isBlocked(this.direction)) {
      this.held = true;
      this.link.whenFree(this.direction, () => this.travelOn());
      return;
    }
    this.free = Math.max(this.scheduler.now + this.link.delay(), this.free);
    this.scheduler.at(this.free, () => {
      if (this.queue[0] !== segment) return;
      this.queue.shift();
      for (const arrive of segment) arrive();
    });
  }

  private travelOn(): void {
    this.held = false;
    for (const segment of [...this.queue]) {
      // The link may be blocked again by then.
      if (!this.isHeld()) this.travel(segment);
    }
  }

  private isHeld(): boolean {
    return this.held;
  }
}
