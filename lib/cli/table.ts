import Table from 'cli-table3';

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

/** Units and the number of milliseconds from which each is used, largest first. */
const UNITS = [
  { unit: 'days', length: 86_400_000, from: 2 * 86_400_000 },
  { unit: 'h', length: 3_600_000, from: 2 * 3_600_000 },
  { unit: 'min', length: 60_000, from: 2 * 60_000 },
  { unit: 's', length: 1_000, from: 1_000 },
];

/** Formats milliseconds for people. */
export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  const size = Math.abs(milliseconds);
  const larger = UNITS.find(({ from }) => size >= from);
  if (larger) return `${(milliseconds / larger.length).toFixed(1)} ${larger.unit}`;
  return `${milliseconds.toFixed(size < 10 ? 1 : 0)} ms`;
}
