import { showNames } from '../display.js';
import { beginningOf } from './patterns.js';

// The latest pairs that are kept, of kinds and of names.
const MAX_PAIRS = 1_000;
// Of one call: the first ones, and none that is longer.
const MAX_NAMES = 10;
const LONGEST_NAME = 256;
// Paths that one search tries before it gives up.
const MAX_PATHS = 10_000;

// What one call locks.
export interface LockedPlace {
  readonly resources: readonly string[];
  readonly isShared: boolean;
  readonly isPermit: boolean;
  // The decorated method or the interceptor; `undefined` for a call of the service.
  readonly place: string | undefined;
}

export interface HeldPlace extends LockedPlace {
  // Its call chain has split into branches inside of it, which it does not keep apart.
  readonly isSplit: boolean;
}

interface Name {
  // The key of a permit is another one than that of a lock with this name.
  readonly key: string;
  readonly kind: string;
  readonly from: LockedPlace;
  readonly name: string;
}

// Some call chain has held one and waited for the other.
interface Pair {
  readonly held: string;
  readonly wanted: string;
  readonly text: string;
  // The locks that were held each time, and whether they were shared: they keep chains apart.
  readonly gates: ReadonlyMap<string, boolean>;
}

// The order in which call chains take locks. Chains can wait for each other if what they hold and want is a cycle, as long
// as no lock that they hold keeps them apart. A permit counts as the last one, and a shared lock as one that an exclusive
// request waits for: other processes may do so.
export class LockOrder {
  private readonly pairs = new Map<string, Pair>();
  private readonly byHeld = new Map<string, Set<Pair>>();
  private readonly reported = new Set<string>();

  // A cycle that this call would complete, in words; `undefined` if there is none, or it was reported. With `refuse`, the call
  // does not take place, so it is reported each time.
  note(chain: readonly HeldPlace[], wanted: LockedPlace, refuse: boolean): string | undefined {
    const names = chain.flatMap(namesOf);
    const gates = new Map<string, boolean>();
    for (const held of chain) {
      if (held.isSplit || held.isPermit) continue;
      for (const { key } of namesOf(held)) gates.set(key, held.isShared);
    }
    const modes = names.map(({ kind, from }) => (from.isShared ? `${kind}\0shared` : kind));
    const surroundings = [...new Set(modes)].sort().join('\0');
    const replaced = new Map<string, Pair | undefined>();
    for (const to of namesOf(wanted)) {
      for (const from of names) {
        // Names of one kind may be taken in an order of their own, such as from parent to child. Those of two kinds are
        // taken to be independent of each other.
        const [held, wanted] = from.kind === to.kind ? [from.key, to.key] : [from.kind, to.kind];
        const id = `${surroundings}\0${held}\0${wanted}`;
        const known = this.pairs.get(id);
        const common = known ? commonGates(known.gates, gates) : gates;
        if (known?.gates.size === common.size) continue;
        const pair = { held, wanted, gates: common, text: known?.text ?? textOf(from, to) };
        replaced.set(id, known);
        this.set(id, pair);
        const cycle = this.cycleOf(pair);
        if (!cycle || !(refuse || this.isNew(cycle))) continue;
        if (refuse) for (const [each, before] of replaced) this.set(each, before);
        return describe(cycle);
      }
    }
    return undefined;
  }

  private set(id: string, pair: Pair | undefined): void {
    const old = this.pairs.get(id);
    if (old) this.remove(id, old);
    if (!pair) return;
    const [oldest] = this.pairs;
    if (oldest && this.pairs.size >= MAX_PAIRS) this.remove(...oldest);
    this.pairs.set(id, pair);
    const others = this.byHeld.get(pair.held) ?? new Set();
    this.byHeld.set(pair.held, others.add(pair));
  }

  private remove(id: string, pair: Pair): void {
    this.pairs.delete(id);
    const others = this.byHeld.get(pair.held);
    others?.delete(pair);
    if (others?.size === 0) this.byHeld.delete(pair.held);
  }

  private isNew(cycle: readonly Pair[]): boolean {
    const id = cycle.map(({ held, wanted }) => `${held}\0${wanted}`).sort();
    const isNew = this.reported.size < MAX_PAIRS && !this.reported.has(id.join('\0'));
    if (isNew) this.reported.add(id.join('\0'));
    return isNew;
  }

  // The shortest one with this pair.
  private cycleOf(start: Pair): readonly Pair[] | undefined {
    if (!this.leads(start.wanted, start.held)) return undefined;
    let paths: (readonly Pair[])[] = [[start]];
    for (let tried = 0; paths.length > 0;) {
      const longer: (readonly Pair[])[] = [];
      for (const path of paths) {
        for (const next of this.byHeld.get(path.at(-1)?.wanted ?? '') ?? []) {
          if (path.some((pair) => pair.wanted === next.wanted || keepApart(pair, next))) continue;
          if (next.wanted === start.held) return [...path, next];
          if (++tried > MAX_PATHS) return undefined;
          longer.push([...path, next]);
        }
      }
      paths = longer;
    }
    return undefined;
  }

  private leads(from: string, to: string): boolean {
    const seen = new Set([from]);
    for (const each of seen) for (const { wanted } of this.byHeld.get(each) ?? []) seen.add(wanted);
    return seen.has(to);
  }
}

function namesOf(from: LockedPlace): readonly Name[] {
  const short = from.resources.filter(({ length }) => length <= LONGEST_NAME).slice(0, MAX_NAMES);
  const mark = from.isPermit ? '\0permit' : '';
  return short.map((name) => ({ from, name, key: name + mark, kind: kindOf(name) + mark }));
}

// A name without a colon is one of its own here.
function kindOf(name: string): string {
  return name.includes(':') ? beginningOf(name) : name;
}

function commonGates(one: ReadonlyMap<string, boolean>, other: ReadonlyMap<string, boolean>): Map<string, boolean> {
  return new Map([...one].filter(([name]) => other.has(name)));
}

// Two chains cannot be there at the same time.
function keepApart(one: Pair, other: Pair): boolean {
  for (const [name, isShared] of one.gates) {
    const isSharedThere = other.gates.get(name);
    if (isSharedThere !== undefined && !(isShared && isSharedThere)) return true;
  }
  return false;
}

function textOf(held: Name, wanted: Name): string {
  return `${nameOf(held)} is held while ${nameOf(wanted)} is waited for`;
}

function nameOf({ name, from: { isShared, isPermit, place } }: Name): string {
  const kind = isPermit ? 'a permit of ' : isShared ? 'the shared lock on ' : '';
  return `${kind}${showNames([name])}${place === undefined ? '' : ` (${place})`}`;
}

function describe(cycle: readonly Pair[]): string {
  return (
    `lock order: ${cycle.map(({ text }) => text).join(', and ')}. Such calls can wait for each other until their ` +
    'budgets end: take these locks in one order, or together in one call'
  );
}
