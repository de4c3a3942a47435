// Reads the parts of a Markdown file that the checks need.
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { root } from '../run.mjs';

const PASSED_OVER = new Set(['node_modules', 'dist', 'build', 'coverage', '.cache', '.git']);
const FENCE = /^( *)(`{3,}|~{3,})([^`]*)$/;
const NAMED = /^(?:\/\/|#) ([\w./-]+\.\w+)$/;
const QUOTED = /^(?:\/\/|#|--) from (\S+)$/;

/** Every Markdown file of the repository. */
export async function markdownFiles(folder = root) {
  const entries = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => !PASSED_OVER.has(name));
  const found = await Promise.all(
    entries.map((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return markdownFiles(path);
      return entry.name.endsWith('.md') ? [path] : [];
    }),
  );
  return found.flat().sort();
}

export async function readMarkdown(path) {
  return parseMarkdown(path, await readFile(path, 'utf8'));
}

/**
 * - `blocks`: fenced code, with `line`, the number of the first line of the code
 * - `prose`: everything else, with the lines of the blocks left empty
 * - `headings`: the titles of all headings
 */
export function parseMarkdown(path, text) {
  const file = { path, name: relative(root, path), folder: dirname(path), text, blocks: [], headings: [], prose: '' };
  const prose = [];
  let open;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, indent, fence, info] = FENCE.exec(line) ?? [];
    if (open) {
      if (closes(open, fence, info)) open = undefined;
      else open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart());
      prose.push('');
    } else if (fence) {
      open = { language: info.trim().split(/\s+/)[0], line: index + 2, lines: [], indent, fence };
      file.blocks.push(open);
      prose.push('');
    } else {
      if (/^#{1,6} /.test(line)) file.headings.push(line.replace(/^#+ /, '').trim());
      prose.push(line);
    }
  }
  file.prose = prose.join('\n');
  file.unclosed = open;
  for (const block of file.blocks) {
    block.text = block.lines.join('\n');
    // A file name in a comment on the first line names the block; `from` before it makes the block a quotation.
    block.fileName = NAMED.exec(block.lines[0] ?? '')?.[1];
    block.quotes = QUOTED.exec(block.lines[0] ?? '')?.[1];
  }
  return file;
}

/** The anchors that GitHub generates for the headings. */
export function anchorsOf({ headings, prose }) {
  const seen = new Map();
  const anchors = headings.map((heading) => {
    const slug = slugOf(heading);
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
  return new Set([...anchors, ...[...prose.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id]) => id)]);
}

/** The number of the line that contains an offset. */
export function lineAt(text, offset) {
  return text.slice(0, offset).split('\n').length;
}

function closes(open, fence, info) {
  return fence !== undefined && fence.startsWith(open.fence) && info.trim() === '';
}

function slugOf(heading) {
  return heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}
