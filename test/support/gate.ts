import { EventEmitter, once } from 'node:events';
import type { LockObserver } from 'nestjs-redlock';

/** Work that lasts until the test ends it, and that remembers how many were at it at once. */
export class Gate {
  private readonly events = new EventEmitter();
  private readonly inside: (() => void)[] = [];
  private isOpen = false;
  private count = 0;
  private most = 0;

  /** How many have come in so far. */
  get arrivals(): number {
    return this.count;
  }

  /** The largest number of those that were in at the same time. */
  get crowd(): number {
    return this.most;
  }

  /** Stays in until somebody opens. */
  async pass(): Promise<void> {
    this.count += 1;
    if (this.isOpen) return;
    await new Promise<void>((leave) => {
      this.inside.push(leave);
      this.most = Math.max(this.most, this.inside.length);
      this.events.emit('arrival');
    });
  }

  /** Resolves when so many have come in, those who have left included. */
  async arrived(count: number): Promise<void> {
    while (this.count < count) await once(this.events, 'arrival');
  }

  /** Lets out who is in. Who comes later stays in. */
  open(): void {
    for (const leave of this.inside.splice(0)) leave();
  }

  /** Keeps nobody from now on: a test that has failed must not keep its application from ending. */
  stayOpen(): void {
    this.isOpen = true;
    this.open();
  }
}

/** Hears when somebody asks for a lock that somebody else holds. */
export class Refusals implements LockObserver {
  private readonly events = new EventEmitter();

  masterAnswered: NonNullable<LockObserver['masterAnswered']> = (_master, _operation, { kind }) => {
    if (kind === 'held') this.events.emit('refusal');
  };

  /** Resolves at the next one. */
  async next(): Promise<void> {
    await once(this.events, 'refusal');
  }
}
