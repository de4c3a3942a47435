import type { KeyNames, Keyspace } from '../settings/keyspace.js';
import type { Random } from '../redlock/holder.js';

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
