// Checks that each rule of docs/protocol.md is cited by code, model and test, and that each citation has a rule.
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { lineAt } from './markdown.mjs';

export const PROTOCOL = 'docs/protocol.md';
const MOST_LINES = 400;
const RULE = /^- \*\*(\d+\.\d+)\*\*((?:(?!\n- |\n#|\n\n)[^])*)/gm;
/** `Protocol 8.3`, `Protocol 8.3 and 8.4` */
const CITATION = /\bProtocol (\d+\.\d+(?:(?:, | and )\d+\.\d+)*)/g;
/** At the end of a rule that the model leaves out. */
const NOT_MODELLED = '∅';
const SOURCE = /\.(?:ts|mjs|lua|md)$/;
/** Where a rule has to be cited, by the folder of the citation. */
const KINDS = [
  { kind: 'model', start: 'test/model/' },
  { kind: 'test', start: 'test/' },
  { kind: 'code', start: 'lib/' },
];

/**
 * @param files name and text of the page, of the library and of its tests
 * @returns file, line and message of each problem
 */
export function protocolProblems(files) {
  const page = files.find(({ name }) => name === PROTOCOL);
  if (!page) return [{ file: PROTOCOL, line: 1, message: 'there is no such file' }];
  const problems = [];
  const rules = rulesIn(page, problems);
  const cited = new Map();
  for (const file of files) {
    const kind = KINDS.find(({ start }) => file.name.startsWith(start))?.kind;
    if (kind === undefined) continue;
    for (const { number, line } of citationsIn(file)) {
      if (rules.has(number)) cited.set(number, (cited.get(number) ?? new Set()).add(kind));
      else problems.push({ file: file.name, line, message: `${PROTOCOL} has no rule ${number}` });
    }
  }
  for (const [number, { line, isModelled }] of rules) {
    const kinds = cited.get(number) ?? new Set();
    const expected = isModelled ? ['code', 'model', 'test'] : ['code', 'test'];
    for (const kind of expected.filter((one) => !kinds.has(one))) {
      problems.push({ file: PROTOCOL, line, message: `no ${kind} cites Protocol ${number}` });
    }
    if (!isModelled && kinds.has('model')) {
      problems.push({
        file: PROTOCOL,
        line,
        message: `the model cites Protocol ${number}: take its ${NOT_MODELLED} away`,
      });
    }
  }
  return problems;
}

/** The page, and every source in which a citation counts. */
export async function protocolFiles(root) {
  const names = await Promise.all(
    ['lib', 'test'].map((folder) => readdir(join(root, folder), { recursive: true, withFileTypes: true })),
  );
  const sources = names
    .flat()
    .filter((entry) => entry.isFile() && SOURCE.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)).replaceAll('\\', '/'));
  return Promise.all(
    [PROTOCOL, ...sources].map(async (name) => ({ name, text: await readFile(join(root, name), 'utf8') })),
  );
}

function rulesIn({ name, text }, problems) {
  const rules = new Map();
  const report = (line, message) => problems.push({ file: name, line, message });
  const lines = text.trimEnd().split('\n').length;
  if (lines > MOST_LINES) report(MOST_LINES + 1, `has ${lines} lines, and ${MOST_LINES} at most`);
  let before = [0, 0];
  for (const { 1: number, 2: words, index } of text.matchAll(RULE)) {
    const line = lineAt(text, index);
    const [section, place] = number.split('.').map(Number);
    const follows = section === before[0] ? place === before[1] + 1 : section > before[0] && place === 1;
    if (!follows) report(line, `rule ${number} does not follow ${before.join('.')}`);
    before = [section, place];
    rules.set(number, { line, isModelled: !words.trimEnd().endsWith(NOT_MODELLED) });
  }
  return rules;
}

function citationsIn({ text }) {
  return [...text.matchAll(CITATION)].flatMap(({ 1: numbers, index }) =>
    numbers.split(/, | and /).map((number) => ({ number, line: lineAt(text, index) })),
  );
}
