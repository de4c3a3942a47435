// The parts of the README that a reader copies.

/** The text from a heading of the second level to the next one. */
export function sectionOf(markdown, heading) {
  const [, section] = markdown.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`There is no section "${heading}"`);
  return section.split('\n## ')[0];
}

/** The only fenced code block of a language. */
export function codeOf(section, language) {
  const blocks = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, found]) => found === language);
  if (blocks.length !== 1)
    throw new Error(`There are ${blocks.length} blocks of ${language} instead of one:\n${section}`);
  return blocks[0][2];
}

/** The text with some words replaced, each of which must occur exactly once. */
export function withWords(text, words) {
  let changed = text;
  for (const [word, other] of Object.entries(words)) {
    const count = text.split(word).length - 1;
    if (count !== 1) throw new Error(`"${word}" is there ${count} times instead of once:\n${text}`);
    changed = changed.replace(word, () => other);
  }
  return changed;
}
