import Table from 'cli-table3';

const MOST_SAID = 200;

/** Rows under a head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // Its own colours would also go into files.
  const drawn = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  drawn.push(...rows.map((row) => [...row]));
  return drawn.toString();
}

/** Breaks text between words, into lines of at most so many characters if its words are shorter. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}

/** What a server said, on one line and without anything that a terminal would take for a command. */
export function plain(text: string): string {
  return text.replace(/\p{C}/gu, '?').slice(0, MOST_SAID);
}

/** Units and the milliseconds from which on they are used, the largest first. */
const UNITS = [
  { unit: 'days', length: 86_400_000, from: 2 * 86_400_000 },
  { unit: 'h', length: 3_600_000, from: 2 * 3_600_000 },
  { unit: 'min', length: 60_000, from: 2 * 60_000 },
  { unit: 's', length: 1_000, from: 1_000 },
];

/** Milliseconds, for people. */
export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  const size = Math.abs(milliseconds);
  const larger = UNITS.find(({ from }) => size >= from);
  if (larger) return `${(milliseconds / larger.length).toFixed(1)} ${larger.unit}`;
  return `${milliseconds.toFixed(size < 10 ? 1 : 0)} ms`;
}
