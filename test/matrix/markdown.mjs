// What a reader of the README copies.

/** Text under a heading of the second level, up to the next one. */
export function sectionOf(markdown, heading) {
  const [, section] = markdown.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`There is no section "${heading}"`);
  return section.split('\n## ')[0];
}

/** The only fenced code of that language. */
export function codeOf(section, language) {
  const blocks = [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].filter(([, found]) => found === language);
  if (blocks.length !== 1)
    throw new Error(`There are ${blocks.length} blocks of ${language} instead of one:\n${section}`);
  return blocks[0][2];
}

/** The text with other words in place of some, each of which must be there once. */
export function withWords(text, words) {
  let changed = text;
  for (const [word, other] of Object.entries(words)) {
    const count = text.split(word).length - 1;
    if (count !== 1) throw new Error(`"${word}" is there ${count} times instead of once:\n${text}`);
    changed = changed.replace(word, () => other);
  }
  return changed;
}
