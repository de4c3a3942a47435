import type { PickRequest, QueueTicket } from '../masters/master.interface.js';
import type { Instant } from '../redlock/clock.js';
import { type KeyNames, NUL } from '../settings/keyspace.js';
import type { Failure, Step } from '../waiting/transitions.js';
import { NamedKeys } from './kind.js';
import type { PermitBook } from './permit-book.js';

// One of the permits of a resource or, as long as none is chosen, all of them.
export class PermitKey extends NamedKeys {
  constructor(private current: KeyNames) {
    super();
  }

  get names(): KeyNames {
    return this.current;
  }

  get isShared(): boolean {
    return false;
  }

  get slot(): number | undefined {
    return this.current.slot;
  }

  // One of these keys.
  // Protocol 11.10
  pick(
    keys: readonly string[],
    token: string,
    ttl: number,
    since: Instant,
    queue: QueueTicket | undefined,
  ): PickRequest {
    return { op: 'pick', keys, token, ttl, since: since.monotonic, withdrawn: false, queue };
  }

  // Until one is taken, the key to release is not known.
  choose(namesOf: (key: string) => KeyNames, key: string | undefined): void {
    if (key !== undefined) this.current = namesOf(key);
  }
}

// In one try: after a refusal of the other masters, another permit is picked, up to so many with the first one.
const MAX_PICKS = 4;

// No resource has such a name.
export function queueOfPermits(resource: string): string {
  return `${NUL}permits:${resource}`;
}

// Of a lock, or of a permit, which has a slot.
export function queuesOf(held: { resources: readonly string[]; slot: number | undefined }): readonly string[] {
  return held.slot === undefined ? held.resources : held.resources.map(queueOfPermits);
}

// Which permits of a resource one acquisition tries to take, one after the other.
export class PermitChoice {
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

  // These attempts belong to the first one, which is made however small the budget is.
  get isFirstTry(): boolean {
    return this.canGoOn;
  }

  claimFirst(): KeyNames {
    const slot = this.book.firstOf(this.resource, this.permits);
    this.claim(slot);
    return this.book.namesOf(this.resource, slot);
  }

  // In the order in which the home master tries them.
  get order(): readonly string[] {
    const { keys } = this.all;
    const order = this.book.orderOf(this.resource, this.permits).filter((slot) => !this.tried.has(slot));
    // While other calls of this process try all of them, the answer of the master decides.
    return order.length > 0 ? order.flatMap((slot) => keys[slot] ?? []) : keys;
  }

  readonly namesOf = (key: string): KeyNames => {
    const slot = this.all.keys.indexOf(key);
    this.claim(slot);
    return this.book.namesOf(this.resource, slot);
  };

  // The permit counts as used until the lock has ended.
  keep(): void {
    this.claimed = undefined;
  }

  // True if another permit is to be tried at once.
  triesAnother(step: Step, failure: Failure): boolean {
    const { claimed } = this;
    this.giveBack();
    const mayBeFree = step !== 'all' && failure === 'split' && claimed !== undefined;
    if (mayBeFree) this.tried.add(claimed);
    // Protocol 11.10
    return mayBeFree && this.tried.size < Math.min(this.permits, MAX_PICKS);
  }

  beginAnew(): void {
    this.tried.clear();
    this.canGoOn = false;
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
