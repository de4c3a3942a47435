import type ts from 'typescript';
import type { TypeScript } from './typescript.js';

/** Text that is inserted, or replaces what is between the positions. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Replaces a node, without the comments before it. */
export function replace(node: ts.Node, text: string): Change {
  return { start: node.getStart(), end: node.end, text };
}

/** Whether a list or an object has nothing but these parts: no comments. */
export function isPlain(node: ts.Node, parts: readonly ts.Node[]): boolean {
  const bare = (text: string) => text.replaceAll(/[\s,[\]{}]/g, '');
  return bare(node.getText()) === bare(parts.map((part) => part.getText()).join(''));
}

/** Applies changes that do not overlap, with the line endings of the file. */
export function apply(text: string, changes: readonly Change[]): string {
  const isWindows = text.includes('\r\n');
  let changed = text;
  for (const change of changes.toSorted((a, b) => b.start - a.start)) {
    const inserted = isWindows ? change.text.replaceAll(/\r?\n/g, '\r\n') : change.text;
    changed = changed.slice(0, change.start) + inserted + changed.slice(change.end);
  }
  return changed;
}

/** The end of the comments that follow on the same line. */
export function endWithComments(typescript: TypeScript, text: string, position: number): number {
  return typescript.getTrailingCommentRanges(text, position)?.at(-1)?.end ?? position;
}

/** The indentation of the line of a position. */
export function indentationAt(text: string, position: number): string {
  return /^[ \t]*/.exec(lineUpTo(text, position))?.[0] ?? '';
}

export function isFirstOnLine(text: string, position: number): boolean {
  return lineUpTo(text, position).trim() === '';
}

function lineUpTo(text: string, position: number): string {
  return text.slice(text.lastIndexOf('\n', position - 1) + 1, position);
}
