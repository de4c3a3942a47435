import Table from 'cli-table3';

export { duration } from '../core/display.js';

const MOST_SAID = 200;

/** Columns of a line. */
const LINE = 100;
const LEAST_COLUMN = 12;

/** Paints one line of a cell. */
export type Paint = (line: string, cell: { readonly row: readonly string[]; readonly column: number }) => string;

/** Draws rows under a header, in lines of at most 100 columns. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint = (line) => line,
): string {
  // No colours of its own, because the table would also write them into files.
  const drawn = new Table({ head: [], style: { head: [], border: [], compact: true } });
  const widths = widthsFor([head, ...rows]);
  drawn.options.head = head.map((cell, column) => wrap(cell, widths[column] ?? LINE));
  for (const row of rows) {
    drawn.push(
      row.map((cell, column) => {
        const lines = wrap(cell, widths[column] ?? LINE).split('\n');
        return lines.map((line) => paint(line, { row, column })).join('\n');
      }),
    );
  }
  return drawn.toString();
}

/** The width of each column: its longest cell, and less in the widest ones if a line would be too long. */
function widthsFor(rows: readonly (readonly string[])[]): number[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  // Each cell has a space on both sides and a border.
  const room = LINE - 1 - 3 * widths.length;
  while (widths.reduce((sum, width) => sum + width, 0) > room) {
    const widest = Math.max(...widths);
    if (widest <= LEAST_COLUMN) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

/** Breaks a string into lines of at most `width` characters, between words where that is possible. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  const pieces = text.split(' ').flatMap((word) => word.match(new RegExp(`.{1,${width}}`, 'gsu')) ?? ['']);
  for (const word of pieces) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}

/** Shows a server's message on one line, without characters that a terminal would interpret as a command. */
export function plain(text: string): string {
  return text.replace(/\p{C}/gu, '?').slice(0, MOST_SAID);
}
