import { readFile, writeFile } from 'node:fs/promises';

/**
 * Replaces the text between the two comments that delimit a part of a Markdown page. Several commands write such
 * parts.
 */
export async function writePart(file, name, text) {
  const page = await readFile(file, 'utf8');
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no place for this table: write ${begin} and ${end} into it`);
  await writeFile(file, `${page.slice(0, from + begin.length)}\n\n${text.trim()}\n\n${page.slice(to)}`);
}
