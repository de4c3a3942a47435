import { EventEmitter, once } from 'node:events';
import type { LockObserver } from 'nestjs-redlock';

/** Work that blocks until the test releases it, and that records how many callers were inside at once. */
export class Gate {
  private readonly events = new EventEmitter();
  private readonly inside: (() => void)[] = [];
  private isOpen = false;
  private count = 0;
  private most = 0;

  /** Number of callers that have entered so far. */
  get arrivals(): number {
    return this.count;
  }

  /** The largest number of callers that were inside at the same time. */
  get crowd(): number {
    return this.most;
  }

  /** Blocks until the gate opens. */
  async pass(): Promise<void> {
    this.count += 1;
    if (this.isOpen) return;
    await new Promise<void>((leave) => {
      this.inside.push(leave);
      this.most = Math.max(this.most, this.inside.length);
      this.events.emit('arrival');
    });
  }

  /** Resolves when this many callers have entered, including those that have left. */
  async arrived(count: number): Promise<void> {
    while (this.count < count) await once(this.events, 'arrival');
  }

  /** Releases the callers inside. Later callers block again. */
  open(): void {
    for (const leave of this.inside.splice(0)) leave();
  }

  /** Blocks no caller from now on: a failed test must not keep its application from closing. */
  stayOpen(): void {
    this.isOpen = true;
    this.open();
  }
}

/** Observes requests for a lock that another holder has. */
export class Refusals implements LockObserver {
  private readonly events = new EventEmitter();

  masterAnswered: NonNullable<LockObserver['masterAnswered']> = (_master, _operation, { kind }) => {
    if (kind === 'held') this.events.emit('refusal');
  };

  /** Resolves at the next refusal. */
  async next(): Promise<void> {
    await once(this.events, 'refusal');
  }
}
