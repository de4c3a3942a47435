import { readFile, writeFile } from 'node:fs/promises';

/**
 * Replaces the text between the two comments that delimit a part of a Markdown page. Several commands write such
 * parts.
 */
export async function writePart(file, name, text) {
  await writeFile(file, await withPart(await readFile(file, 'utf8'), file, name, text));
}

/** The text of a page with this part replaced, formatted. */
export async function withPart(page, file, name, text) {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no place for this part: write ${begin} and ${end} into it`);
  // Loaded late: on a fresh clone, the formatter is installed after this module is loaded.
  const { format, resolveConfig } = await import('prettier');
  const written = `${page.slice(0, from + begin.length)}\n\n${text.trim()}\n\n${page.slice(to)}`;
  return format(written, { ...(await resolveConfig(file)), filepath: file });
}

/** A Markdown table. The formatter aligns it. */
export function markdownTable([header, ...rows]) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}
