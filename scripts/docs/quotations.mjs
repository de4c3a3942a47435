// A block that begins with `// from <file>` quotes that file. The file must contain its lines one after the other,
// apart from indentation and comments. A line `// ...` skips some lines, and so does `{ ... }` at the end of a line.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const GAP = /^(?:(?:\/\/|#|--) )?\.\.\.$/;
/** A line of which only the beginning is quoted. It is not spread syntax, in which a name follows. */
const CUT = /^(.+?)\s*\{? \.\.\.(?!\w)/;

export async function checkQuotation(file, block) {
  const at = (index, message) => [{ file: file.name, line: block.line + index, message }];
  const source = await readFile(join(file.folder, block.quotes), 'utf8').catch(() => undefined);
  if (source === undefined) return at(0, `there is no ${block.quotes}`);
  const lines = source.split(/\r?\n/).map(trim).filter(isText);
  const passages = passagesOf(block);
  if (passages.length === 0) return at(0, 'quotes nothing');

  let from = 0;
  for (const passage of passages) {
    const { start, length } = longestMatch(passage, lines, from);
    if (length < passage.length) return at(passage[length].index, `is not what ${block.quotes} says here`);
    from = start + length;
  }
  return [];
}

/** The passages between the gaps, line by line. */
function passagesOf({ lines }) {
  const passages = [[]];
  for (const [index, line] of lines.entries()) {
    const text = trim(line);
    const beginning = CUT.exec(text)?.[1];
    if (GAP.test(line.trim())) passages.push([]);
    else if (index > 0 && isText(text)) passages.at(-1).push({ text: beginning ?? text, isCut: !!beginning, index });
    if (beginning) passages.push([]);
  }
  return passages.filter((passage) => passage.length > 0);
}

function longestMatch(passage, lines, from) {
  let best = { start: from, length: 0 };
  for (let start = from; start < lines.length; start++) {
    let length = 0;
    while (length < passage.length && isQuoted(passage[length], lines[start + length])) length += 1;
    if (length > best.length) best = { start, length };
  }
  return best;
}

function isQuoted({ text, isCut }, line) {
  return line === text || (isCut && line?.startsWith(text));
}

/** Removes indentation and comments. The slashes in an address have no blanks around them, so they stay. */
function trim(line) {
  return line.replace(/^\s*(?:\/\/|\/?\*).*|\s(?:\/\/|--) .*/, '').trim();
}

const isText = (line) => line !== '';
