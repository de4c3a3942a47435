// Checks that the targets of relative links, and the paths in prose, exist.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { root } from '../run.mjs';
import { anchorsOf, lineAt, readMarkdown } from './markdown.mjs';

const LINK = /\]\(\s*<?([^()\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
const REFERENCE = /^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?$/gm;
const HTML = /<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)="([^"\s]+)/g;
const CODE = /(?<!`)(`+)(?!`)[^]*?(?<!`)\1(?!`)/g;
/** Before a path that belongs to an earlier commit, and may have moved since. */
const OF_COMMIT = /`[0-9a-f]{7}`, $/;
/** A path into a folder of the repository that is a code span of its own. A glob is checked up to its first star. */
const PATH = /^`((?:lib|test|scripts|sample|docs|\.ci|\.github)\/[\w./*-]+)`$/;

/** The `files` of the package, before and after the star. */
const PACKED = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).files.map((name) => name.split('*'));

export async function checkLinks(file) {
  const problems = [];
  const report = (offset, message) => problems.push({ file: file.name, line: lineAt(file.prose, offset), message });
  // Code contains no links. The blanks preserve the offsets.
  const text = file.prose.replace(CODE, (code) => code.replace(/[^\n]/g, ' '));
  for (const pattern of [LINK, REFERENCE, HTML]) {
    for (const match of text.matchAll(pattern)) {
      const problem = await problemOf(match[1], file);
      if (problem) report(match.index, problem);
    }
  }
  for (const match of file.prose.matchAll(CODE)) {
    const path = PATH.exec(match[0])?.[1];
    const isOfCommit = OF_COMMIT.test(file.prose.slice(0, match.index));
    if (path && !isOfCommit && !exists(path, file)) report(match.index, `there is no ${path}`);
  }
  return problems;
}

async function problemOf(target, file) {
  if (/^[a-z][a-z\d+.-]*:/i.test(target)) return undefined;
  const [path, anchor] = target.split('#');
  const resolved = path === '' ? file.path : resolve(file.folder, decodeURIComponent(path));
  if (relative(root, resolved).startsWith('..')) return `the link to ${target} leaves the repository`;
  if (!existsSync(resolved)) return `the link to ${target} leads nowhere`;
  // Pictures are too large for the package, and their text stands in for them.
  if (isPacked(file.path) && !isPacked(resolved) && !/\.(?:png|svg)$/.test(resolved))
    return `the link to ${target} leads out of the package: name the path`;
  if (anchor === undefined) return undefined;
  if (!resolved.endsWith('.md')) return `the link to ${target} has an anchor, and is no Markdown file`;
  const anchors = anchorsOf(resolved === file.path ? file : await readMarkdown(resolved));
  return anchors.has(anchor) ? undefined : `the link to ${target} has an anchor that no heading there has`;
}

/** Whether the package has a file. */
function isPacked(path) {
  const name = relative(root, path);
  return PACKED.some(
    ([start, end = '']) => name === start || (end !== '' && name.startsWith(start) && name.endsWith(end)),
  );
}

function exists(path, file) {
  const fixed = path.includes('*') ? path.slice(0, path.indexOf('*')).replace(/[^/]*$/, '') : path;
  return [root, file.folder].some((folder) => {
    const full = join(folder, fixed);
    return existsSync(full) && (!path.includes('*') || statSync(full).isDirectory());
  });
}
