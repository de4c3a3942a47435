import { type KeyNames, type Keyspace, NUL } from '../settings/keyspace.js';
import type { Random } from '../redlock/holder.js';
import type { Failure, Step } from '../waiting/transitions.js';

interface Usage {
  // How many calls hold or try to take each: more than one only if instances differ in the number of permits.
  readonly used: Map<number, number>;
  // Not used again since.
  readonly released: Set<number>;
  // By the number of permits.
  readonly names: Map<number, KeyNames>;
}

// Which permits this process uses, so that it does not try to take them once more.
export class PermitBook {
  private readonly usages = new Map<string, Usage>();

  constructor(
    private readonly keyspace: Keyspace,
    private readonly random: Random,
  ) {}

  allOf(resource: string, permits: number): KeyNames {
    const names = this.usages.get(resource)?.names;
    const known = names?.get(permits);
    if (known) return known;
    const slots = Array.from({ length: permits }, (_, slot) => slot);
    const all = this.keyspace.namesOfSlots(resource, slots);
    names?.set(permits, all);
    return all;
  }

  namesOf(resource: string, slot: number): KeyNames {
    return this.keyspace.namesOfSlots(resource, [slot]);
  }

  // One that this process has released is likely to be free.
  firstOf(resource: string, permits: number): number {
    const usage = this.usages.get(resource);
    for (const slot of usage?.released ?? []) if (slot < permits) return slot;
    return this.orderOf(resource, permits)[0] ?? this.startOf(permits);
  }

  // From a random one on, so that processes do not try the same ones.
  orderOf(resource: string, permits: number): readonly number[] {
    const used = this.usages.get(resource)?.used;
    const start = this.startOf(permits);
    const slots = Array.from({ length: permits }, (_, i) => (start + i) % permits);
    return slots.filter((slot) => !used?.has(slot));
  }

  claim(resource: string, slot: number): void {
    const { used, released } = this.usageOf(resource);
    used.set(slot, (used.get(slot) ?? 0) + 1);
    released.delete(slot);
  }

  free(resource: string, slot: number, isReleased: boolean): void {
    const usage = this.usages.get(resource);
    if (!usage) return;
    const { used, released } = usage;
    const left = (used.get(slot) ?? 1) - 1;
    if (left > 0) used.set(slot, left);
    else used.delete(slot);
    if (left === 0 && isReleased) released.add(slot);
    // What is left is only likely to be free.
    if (used.size === 0) this.usages.delete(resource);
  }

  private startOf(permits: number): number {
    return Math.floor(this.random.fraction() * permits) % permits;
  }

  private usageOf(resource: string): Usage {
    let usage = this.usages.get(resource);
    if (!usage) {
      usage = { used: new Map(), released: new Set(), names: new Map() };
      this.usages.set(resource, usage);
    }
    return usage;
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
