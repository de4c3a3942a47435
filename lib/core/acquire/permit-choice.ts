import { type KeyNames, NUL } from '../keyspace.js';
import type { PermitBook } from './permit-book.js';
import type { Failure, Step } from './transitions.js';

/** After a refusal of the other masters, another permit is tried at most so many times. */
const MOST_PICKS = 4;

/** The queue in which the calls of this process wait for permits of a resource. No resource has such a name. */
export function queueOfPermits(resource: string): string {
  return `${NUL}permits:${resource}`;
}

/** Which permits of a resource one acquisition tries to take, one after the other. */
export class PermitChoice {
  /** Names of all permits. */
  readonly all: KeyNames;
  private readonly tried = new Set<number>();
  private claimed: number | undefined;
  private canGoOn = true;

  constructor(
    private readonly book: PermitBook,
    private readonly resource: string,
    private readonly permits: number,
  ) {
    this.all = book.allOf(resource, permits);
  }

  /** Whether its attempts belong to the first one, which is made however small the budget is. */
  get isFirstTry(): boolean {
    return this.canGoOn;
  }

  /** The names of a permit that may be free, for an attempt on all masters at once. */
  guess(): KeyNames {
    const slot = this.book.guess(this.resource, this.permits);
    this.claim(slot);
    return this.book.namesOf(this.resource, slot);
  }

  /** The keys among which the home master may choose, in the order in which to try them. */
  get order(): readonly string[] {
    const { keys } = this.all;
    const order = this.book.orderOf(this.resource, this.permits).filter((slot) => !this.tried.has(slot));
    // While other calls of this process try all of them, the answer of the master decides.
    return order.length > 0 ? order.flatMap((slot) => keys[slot] ?? []) : keys;
  }

  /** The names of the permit with this key. */
  readonly namesOf = (key: string): KeyNames => {
    const slot = this.all.keys.indexOf(key);
    this.claim(slot);
    return this.book.namesOf(this.resource, slot);
  };

  /** The attempt was granted. The permit counts as used until the lock has ended. */
  keep(): void {
    this.claimed = undefined;
  }

  /** The attempt has failed. Returns whether another permit is to be tried at once. */
  triesAnother(step: Step, failure: Failure): boolean {
    const { claimed } = this;
    this.giveBack();
    const mayBeFree = step !== 'all' && failure === 'split' && claimed !== undefined;
    if (mayBeFree) this.tried.add(claimed);
    // Protocol 11.10
    return mayBeFree && this.tried.size < Math.min(this.permits, MOST_PICKS);
  }

  /** All permits may be tried again, after a pause. */
  beginAnew(): void {
    this.tried.clear();
    this.canGoOn = false;
  }

  /** A permit that was passed on to this acquisition is not used. */
  free(slot: number | undefined): void {
    if (slot !== undefined) this.book.free(this.resource, slot, true);
  }

  giveBack(): void {
    if (this.claimed !== undefined) this.book.free(this.resource, this.claimed, false);
    this.claimed = undefined;
  }

  private claim(slot: number): void {
    this.giveBack();
    this.claimed = slot;
    this.book.claim(this.resource, slot);
  }
}
