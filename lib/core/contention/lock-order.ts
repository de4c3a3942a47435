import { showNames } from '../display.js';
import { beginningOf } from './contention.js';

// The latest pairs that are kept, of kinds and of names.
const MAX_PAIRS = 1_000;
// Of one call: the first ones, and none that is longer.
const MAX_NAMES = 10;
const LONGEST_NAME = 256;
// Pairs that one message shows.
const MAX_TEXTS = 8;
// Paths that one search tries before it gives up.
const MAX_PATHS = 10_000;

// What one call locks.
export interface LockedPlace {
  readonly resources: readonly string[];
  readonly isShared: boolean;
  readonly isPermit: boolean;
  // The decorated method or the interceptor; `undefined` for a call of the service.
  readonly place: string | undefined;
  // The call chain that holds it has split into branches, which the lock does not keep apart.
  readonly isSplit?: boolean;
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
  // Its kinds and places, without the variable parts of names.
  readonly label: string;
  // The locks that were held each time, and whether they were shared: they keep chains apart.
  readonly gates: readonly (readonly [key: string, isShared: boolean])[];
}

// The order in which call chains take locks. Chains can wait for each other if what they hold and want is a cycle, as long
// as no lock that they hold keeps them apart. A permit counts as the last one, and a shared lock as one that an exclusive
// request waits for: other processes may do so.
export class LockOrder {
  private readonly pairs = new Map<string, Pair>();
  private readonly byHeld = new Map<string, Set<Pair>>();
  // The latest ones, by the kinds and places of their pairs.
  private readonly reported = new Set<string>();

  // The cycles that this call would complete, in words: those that were not reported. With `refuse`, the call does not take
  // place, so each call has its cycle.
  note(chain: readonly LockedPlace[], wanted: LockedPlace, refuse: boolean): readonly string[] {
    const names = chain.flatMap(namesOf);
    const kinds = new Set<string>();
    const gates = new Map<string, boolean>();
    for (const { key, kind, from } of names) {
      kinds.add(from.isShared ? `${kind}\0shared` : kind);
      if (!from.isSplit && !from.isPermit) gates.set(key, from.isShared);
    }
    const surroundings = [...kinds].sort().join('\0');
    const before = new Map<string, Pair | undefined>();
    const found: string[] = [];
    for (const to of namesOf(wanted)) {
      for (const from of names) {
        // Names of one kind may be taken in an order of their own, such as from parent to child. Those of two kinds are
        // taken to be independent of each other.
        const isOneKind = from.kind === to.kind;
        const pair = { held: isOneKind ? from.key : from.kind, wanted: isOneKind ? to.key : to.kind };
        const id = `${surroundings}\0${pair.held}\0${pair.wanted}`;
        const known = this.pairs.get(id);
        if (known?.gates.every(([name, isShared]) => gates.has(name) && (isShared || !gates.get(name)))) continue;
        const common = known
          ? known.gates.flatMap(([name, isShared]) =>
              gates.has(name) ? [[name, isShared || gates.get(name) === true] as const] : [],
            )
          : [...gates];
        before.set(id, known);
        const { text, label } = known ?? { text: textOf(from, to), label: labelOf(from, to) };
        const cycle = this.cycleOf(this.set(id, { ...pair, gates: common, text, label }));
        if (!cycle) continue;
        found.push(describe(cycle));
        if (refuse) {
          for (const [each, old] of before) this.set(each, old);
          return found;
        }
        const [oldest = ''] = this.reported;
        if (this.reported.size >= MAX_PAIRS) this.reported.delete(oldest);
        this.reported.add(nameOfCycle(cycle));
      }
    }
    return found;
  }

  private set<T extends Pair | undefined>(id: string, pair: T): T {
    const old = this.pairs.get(id);
    if (old) this.remove(id, old);
    if (!pair) return pair;
    const [oldest] = this.pairs;
    if (oldest && this.pairs.size >= MAX_PAIRS) this.remove(...oldest);
    this.pairs.set(id, pair);
    const others = this.byHeld.get(pair.held) ?? new Set();
    this.byHeld.set(pair.held, others.add(pair));
    return pair;
  }

  private remove(id: string, pair: Pair): void {
    this.pairs.delete(id);
    const others = this.byHeld.get(pair.held);
    others?.delete(pair);
    if (others?.size === 0) this.byHeld.delete(pair.held);
  }

  // The shortest one with this pair that was not reported.
  private cycleOf(start: Pair): readonly Pair[] | undefined {
    // Names of one kind that this place takes in no order: there are many pairs of them.
    if (this.reported.has(start.label) || !this.leads(start.wanted, start.held)) return undefined;
    let paths: (readonly Pair[])[] = [[start]];
    for (let tried = 0; paths.length > 0;) {
      const longer: (readonly Pair[])[] = [];
      for (const path of paths) {
        for (const next of this.byHeld.get(path.at(-1)?.wanted ?? '') ?? []) {
          if (path.some((pair) => pair.wanted === next.wanted || keepApart(pair, next))) continue;
          const cycle = [...path, next];
          if (next.wanted !== start.held) longer.push(cycle);
          else if (!this.reported.has(nameOfCycle(cycle))) return cycle;
          if (++tried > MAX_PATHS) return undefined;
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

function nameOfCycle(cycle: readonly Pair[]): string {
  return [...new Set(cycle.map(({ label }) => label))].sort().join('\0');
}

// Two chains cannot be there at the same time.
function keepApart(one: Pair, other: Pair): boolean {
  return one.gates.some(([name, isShared]) =>
    other.gates.some(([there, isSharedThere]) => name === there && !(isShared && isSharedThere)),
  );
}

function labelOf(...names: readonly Name[]): string {
  return names.map(({ kind, from: { place = '' } }) => `${kind}\0${place}`).join('\0');
}

function textOf(held: Name, wanted: Name): string {
  return `${nameOf(held)} is held while ${nameOf(wanted)} is waited for`;
}

function nameOf({ name, from: { isShared, isPermit, place } }: Name): string {
  const kind = isPermit ? 'a permit of ' : isShared ? 'the shared lock on ' : '';
  return `${kind}${showNames([name])}${place === undefined ? '' : ` (${place})`}`;
}

function describe(cycle: readonly Pair[]): string {
  const texts = cycle.slice(0, MAX_TEXTS).map(({ text }) => text);
  if (cycle.length > MAX_TEXTS) texts.push(`${cycle.length - MAX_TEXTS} more`);
  return (
    `lock order: ${texts.join(', and ')}. Such calls can wait for each other until their ` +
    'budgets end: take these locks in one order, or together in one call (see lockOrder)'
  );
}
