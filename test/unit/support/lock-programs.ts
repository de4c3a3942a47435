import type { Chance } from '../../simulation/engine/chance.js';

/** One lock or permit that a call chain takes, inside of those before it. */
export interface Take {
  readonly resource: string;
  readonly mode: 'exclusive' | 'shared' | 'permit';
}

/** What one execution of a call chain takes, the outermost first. */
export type Chain = readonly Take[];

/** A chain that has all but its last one, and waits for that. */
export interface Waiting {
  readonly held: Chain;
  readonly wanted: Take;
}

/** The variable parts of names. A cycle through all kinds needs as many. */
const IDS = [1, 2, 3];
const VARIABLE = 'order:';

/** Some kinds of locks, and the call chains that nest them, each with every choice of the variable parts. */
export function generateProgram(chance: Chance, hasVariables: boolean): readonly (readonly Chain[])[] {
  const kinds = ['cart', 'stock', chance.pick(hasVariables ? [VARIABLE] : ['till', 'stripe'])];
  const sharing = chance.pick([0, 0.4]);
  return Array.from({ length: chance.whole(2, 4) }, () => {
    const depth = chance.whole(2, 3);
    const chain: Take[] = [];
    while (chain.length < depth) {
      const resource = chance.pick(kinds);
      const isTaken = chain.some((take) => take.resource === resource);
      if (isTaken && (resource !== VARIABLE || chance.happens(0.5))) continue;
      const mode = resource === 'stripe' ? 'permit' : chance.happens(sharing) ? 'shared' : 'exclusive';
      chain.push({ resource, mode });
    }
    return choices(chain);
  });
}

/** Without choices that take one lock twice, which is an error of its own. */
function choices(chain: Chain): readonly Chain[] {
  const all = chain.reduce<Chain[]>(
    (before, { resource, mode }) => {
      const names = resource === VARIABLE ? IDS.map((id) => `${resource}${id}`) : [resource];
      return before.flatMap((taken) => names.map((name) => [...taken, { resource: name, mode }]));
    },
    [[]],
  );
  return all.filter((taken) => new Set(taken.map(({ resource }) => resource)).size === taken.length);
}

export function waitsOf(chain: Chain): readonly Waiting[] {
  return chain.slice(1).map((wanted, index) => ({ held: chain.slice(0, index + 1), wanted }));
}

/**
 * Chains that each wait for another one of them for ever, found by trying all sets of up to three. Nested locks are
 * acquired one after the other, so every set whose locks exclude none of the others can come about. Other processes may
 * have all other permits, and may wait for every shared lock alone.
 */
export function findHang(waits: readonly Waiting[]): readonly Waiting[] | undefined {
  for (const [index, one] of waits.entries()) {
    for (const [next, two] of waits.entries()) {
      if (next < index || !canCoexist(one, two)) continue;
      if (isHang([one, two])) return [one, two];
      for (const three of waits.slice(next)) {
        if (!canCoexist(one, three) || !canCoexist(two, three)) continue;
        if (isHang([one, two, three])) return [one, two, three];
      }
    }
  }
  return undefined;
}

function isHang(set: readonly Waiting[]): boolean {
  return set.every((one) =>
    set.some((other) => other !== one && other.held.some(({ resource }) => resource === one.wanted.resource)),
  );
}

function canCoexist(one: Waiting, other: Waiting): boolean {
  return one.held.every(({ resource, mode }) => {
    const there = other.held.find((take) => take.resource === resource);
    return !there || (mode !== 'exclusive' && mode === there.mode);
  });
}
