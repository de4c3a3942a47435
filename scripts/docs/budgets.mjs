// Checks that the README is one to read at once, and that the pages together do not grow.

const LINES = 110;
const CHARACTERS = 160;
/** The line on which the first TypeScript of the README begins. */
const FIRST_CODE = 30;
/** Of the README and all pages, as `wc -w` counts them. */
const WORDS = 28_000;

/** @param files the README and the pages, as `readMarkdown` gives them; others are passed over */
export function budgetProblems(files) {
  const readme = files.find(({ name }) => name === 'README.md');
  return [...(readme ? readmeProblems(readme) : []), ...wordProblems(files.filter(isCounted))];
}

function readmeProblems({ name: file, text, blocks }) {
  const lines = text.trimEnd().split('\n');
  const code = blocks.find(({ language }) => language === 'ts');
  const problems = lines.flatMap(({ length }, i) =>
    length > CHARACTERS
      ? [{ file, line: i + 1, message: `has ${length} characters, and at most ${CHARACTERS} fit` }]
      : [],
  );
  if (lines.length > LINES) {
    problems.push({ file, line: LINES + 1, message: `has ${lines.length} lines, and ${LINES} at most` });
  }
  if (code && code.line > FIRST_CODE) {
    const message = `the first TypeScript begins on line ${code.line}, and on line ${FIRST_CODE} at the latest`;
    problems.push({ file, line: code.line, message });
  }
  return problems;
}

function wordProblems(files) {
  const words = files.flatMap(({ text }) => text.split(/\s+/).filter(Boolean)).length;
  if (words <= WORDS) return [];
  return [{ file: 'README.md', line: 1, message: `README.md and docs have ${words} words, and ${WORDS} at most` }];
}

function isCounted({ name }) {
  return name === 'README.md' || name.startsWith('docs/');
}
