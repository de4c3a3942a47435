import { type Belief, beliefsIn, beliefsOf, type Evidence, mustExclude, type Violation } from './evidence.js';

/** Two sections, not both of them shared, that believed they held a key at the same time. */
export interface Overlap extends Violation {
  /** Whether no assumption was broken. */
  readonly forbidden: boolean;
}

export function overlaps({ keys, phases, workers }: Evidence): Overlap[] {
  const beliefs = beliefsOf({ workers });
  return keys.flatMap((key) => {
    const found: Overlap[] = [];
    let longest: Belief | undefined;
    let longestExclusive: Belief | undefined;
    for (const belief of beliefsIn(key, beliefs)) {
      const isShared = belief.mode === 'shared';
      const rival = isShared ? longestExclusive : longest;
      if (rival && areTogether(rival, belief)) {
        const length = Math.min(rival.to, belief.to) - belief.from;
        const pair = `${rival.section} (${rival.mode}) and ${belief.section} (${belief.mode})`;
        const message = `${pair} believed to hold ${key} at the same time, for ${length.toFixed(1)} ms`;
        found.push({ at: belief.from, message, forbidden: mustExclude(phases, rival, belief) });
      }
      if (!longest || belief.to > longest.to) longest = belief;
      if (!isShared && (!longestExclusive || belief.to > longestExclusive.to)) longestExclusive = belief;
    }
    return found;
  });
}

/** Sections that believed to have a permit while all permits were taken, whatever their slots. */
export function excessPermits({ phases, workers }: Evidence): Violation[] {
  const holders = beliefsOf({ workers })
    .filter(({ permits }) => permits !== undefined)
    .sort((a, b) => a.from - b.from);
  return holders.flatMap((belief, index) => {
    const { permits = 0, section, from } = belief;
    const others = holders
      .slice(0, index)
      .filter((other) => areTogether(other, belief) && mustExclude(phases, other, belief))
      .map((other) => other.section);
    const message = `${section} believed to have one of ${permits} permits at the same time as ${others.join(', ')}`;
    return others.length < permits ? [] : [{ at: from, message }];
  });
}

/** Tokens that were given twice for one key, in every phase. */
export function duplicateTokens({ keys, workers }: Evidence): Violation[] {
  const beliefs = beliefsOf({ workers });
  return keys.flatMap((key) => {
    const owners = new Map<number, Belief>();
    return beliefsIn(key, beliefs).flatMap((belief) => {
      if (belief.token === undefined) return [];
      const owner = owners.get(belief.token);
      owners.set(belief.token, belief);
      const message = `${owner?.section} and ${belief.section} have the same token ${belief.token} for ${key}`;
      return owner ? [{ at: belief.from, message }] : [];
    });
  });
}

/**
 * Tokens that are not larger than an earlier one. A section that asks when another one knows its token must get a
 * larger token, in every phase. While no assumption is broken, so must a section that comes after another one.
 */
export function unorderedTokens({ keys, phases, workers }: Evidence): Violation[] {
  const beliefs = beliefsOf({ workers }).filter(({ token }) => token !== undefined);
  return keys.flatMap((key) => {
    const inOrder = beliefsIn(key, beliefs);
    const violations: Violation[] = [];
    const complain = (before: Belief, after: Belief): void => {
      const message = `${after.section} came after ${before.section} for ${key}, but has ${after.token}, not more than ${before.token}`;
      violations.push({ at: after.from, message });
    };
    const known = [...inOrder].sort((a, b) => knownAt(a) - knownAt(b));
    let largest: Belief | undefined;
    let next = 0;
    for (const belief of [...inOrder].sort((a, b) => a.asked - b.asked)) {
      for (let one = known[next]; one && knownAt(one) < belief.asked; one = known[++next]) {
        if (!largest || tokenOf(one) > tokenOf(largest)) largest = one;
      }
      if (largest && tokenOf(largest) >= tokenOf(belief)) complain(largest, belief);
    }
    for (const [i, belief] of inOrder.entries()) {
      const before = inOrder[i - 1];
      if (!before || before.to > belief.from || !mustExclude(phases, before, belief)) continue;
      if (tokenOf(before) >= tokenOf(belief)) complain(before, belief);
    }
    return violations;
  });
}

/**
 * Writes of an earlier section that were accepted after a write of a later one. In every phase, a section is later if
 * it asked when the earlier one knew its token. While no assumption is broken, a section is also later if its belief
 * began after the other's belief had ended. This check does not look at the tokens.
 */
export function staleWrites({ keys, phases, workers, writes }: Evidence): Violation[] {
  const beliefs = new Map(beliefsOf({ workers }).map((belief) => [belief.section, belief]));
  return keys.flatMap((key) => {
    let lastAsked: Belief | undefined;
    let lastBegun: Belief | undefined;
    return writes.flatMap((write) => {
      const belief = beliefs.get(write.section);
      if (!write.accepted || !belief || !write.keys.includes(key)) return [];
      const late = [
        lastAsked && lastAsked.asked > knownAt(belief) ? lastAsked : undefined,
        lastBegun && lastBegun.from >= belief.to && mustExclude(phases, lastBegun, belief) ? lastBegun : undefined,
      ].find((later) => later !== undefined);
      if (!lastAsked || belief.asked > lastAsked.asked) lastAsked = belief;
      if (!lastBegun || belief.from > lastBegun.from) lastBegun = belief;
      const message = `a write of ${belief.section} to ${key} was accepted after one of ${late?.section}, which came later`;
      return late ? [{ at: write.at, message }] : [];
    });
  });
}

/** Whether the first, which began earlier, still believed when the second one began. */
function areTogether(earlier: Belief, later: Belief): boolean {
  return earlier.to > later.from && later.to > later.from;
}

function knownAt({ tokenAt = Infinity }: Belief): number {
  return tokenAt;
}

function tokenOf({ token = 0 }: Belief): number {
  return token;
}
