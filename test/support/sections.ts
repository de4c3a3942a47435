// Checks of the critical sections on one key.
import type { Section } from '../processes/fence.js';

/** Sections with a token that an earlier section of the list has, too. */
export function duplicatesOf(sections: readonly Section[]): readonly Section[] {
  const seen = new Set<number>();
  return sections.filter(({ token }) => seen.size === seen.add(token).size);
}

/** Pairs of sections in which the second was requested after the first had its token, yet has no larger token. */
export function disorderOf(sections: readonly Section[]): readonly [Section, Section][] {
  const byStart = [...sections].sort((a, b) => a.asked - b.asked);
  const bySince = [...sections].sort((a, b) => a.since - b.since);
  const disorder: [Section, Section][] = [];
  let before: Section | undefined;
  let next = 0;
  for (const section of byStart) {
    for (; bySince[next] && bySince[next]!.since < section.asked; next++) {
      if (!before || bySince[next]!.token > before.token) before = bySince[next]!;
    }
    if (before && before.token >= section.token) disorder.push([before, section]);
  }
  return disorder;
}

/** Pairs of consecutive sections that were seen under the lock at the same time. */
export function overlapsOf(sections: readonly Section[]): readonly [Section, Section][] {
  const bySince = [...sections].sort((a, b) => a.since - b.since);
  return bySince.flatMap((section, i): [Section, Section][] => {
    const previous = bySince[i - 1];
    return previous && previous.until > section.since ? [[previous, section]] : [];
  });
}
