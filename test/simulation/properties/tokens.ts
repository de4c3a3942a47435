import type { Scheduler } from '../engine/scheduler.js';
import { Violation } from './violation.js';

interface Numbered {
  readonly resources: readonly string[];
  readonly token: number;
  readonly holder: string;
  /** When the granted attempt began, and when its token was confirmed; in true time. */
  readonly began: number;
  readonly stood: number;
}

/**
 * Fencing tokens are unique per resource, and larger than those that were confirmed before the attempt began.
 *
 * While counters are kept, this holds whatever the clocks do. A master that has lost its counters continues from its own
 * wall clock (section 9 of the protocol). With the restart guard, this is correct if the clocks of the masters, also of those
 * that were replaced, differ by less than a quarantine lasts. Without the guard, or if the gate cannot know of the loss, it is
 * correct for attempts that are further apart than the clocks.
 */
export class Tokens {
  /** The smallest and the largest error of the wall clock of a master so far, in milliseconds. */
  private earliest = Infinity;
  private latest = -Infinity;
  countersLost: 'never' | 'guarded' | 'unguarded' = 'never';
  private readonly given: Numbered[] = [];

  constructor(
    private readonly scheduler: Scheduler,
    /** The shortest quarantine, in milliseconds. */
    private readonly quarantine: number,
  ) {}

  noteClock(error: number): void {
    this.earliest = Math.min(this.earliest, error);
    this.latest = Math.max(this.latest, error);
  }

  loseCounters(guarded: 'guarded' | 'unguarded'): void {
    if (this.countersLost !== 'unguarded') this.countersLost = guarded;
  }

  note(resources: readonly string[], token: number, holder: string, began: number): void {
    const { now } = this.scheduler;
    const numbered = { resources, token, holder, began, stood: now };
    if (!Number.isSafeInteger(token) || token <= 0) this.fail(`the token of ${holder} is ${token}`);
    for (const earlier of this.given) if (sharesResource(earlier, numbered)) this.compare(earlier, numbered);
    this.given.push(numbered);
  }

  private compare(earlier: Numbered, later: Numbered): void {
    const apart = later.began - earlier.stood;
    if (!this.countersCount && apart <= this.spread) return;
    if (earlier.token === later.token) {
      this.fail(`${earlier.holder} and ${later.holder} have the same token, ${later.token}`);
    }
    if (apart > 0 && earlier.token > later.token) {
      this.fail(`the token of ${later.holder}, ${later.token}, is smaller than ${earlier.token} of ${earlier.holder}`);
    }
  }

  private get spread(): number {
    return this.latest - this.earliest + 1;
  }

  private get countersCount(): boolean {
    if (this.countersLost === 'never') return true;
    return this.countersLost === 'guarded' && this.spread < this.quarantine;
  }

  private fail(message: string): never {
    throw new Violation('fencing tokens', this.scheduler.now, message);
  }
}

function sharesResource(one: Numbered, other: Numbered): boolean {
  return one.resources.some((resource) => other.resources.includes(resource));
}
