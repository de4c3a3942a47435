import { createHash } from 'node:crypto';

/**
 * A random sample. Each mutant has a number that follows from the seed and from what it changes, not from its place, so
 * a change elsewhere in the library leaves most of the sample as it was.
 */
export function sampleOf(mutants, { seed, size }) {
  const numbered = mutants.map((mutant) => ({ mutant, number: hash(`${seed} ${mutant.id}`) }));
  numbered.sort((a, b) => (a.number < b.number ? -1 : 1));
  return numbered.slice(0, size).map(({ mutant }) => mutant);
}

/** Names each mutant after its file, the text around it and the change. Equal names are counted. */
export function withNames(mutants) {
  const times = new Map();
  return mutants.map((mutant) => {
    const { file, around, before, text } = mutant;
    const name = JSON.stringify([file, around, before, text]);
    const time = times.get(name) ?? 0;
    times.set(name, time + 1);
    return { id: hash(`${name} ${time}`).slice(0, 10), ...mutant };
  });
}

function hash(text) {
  return createHash('sha256').update(text).digest('hex');
}
