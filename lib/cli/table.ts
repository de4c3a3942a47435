import Table from 'cli-table3';

const MOST_SAID = 200;

/** Draws rows under a header. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // No colours, because the table would also write them into files.
  const drawn = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  drawn.push(...rows.map((row) => [...row]));
  return drawn.toString();
}

/** Breaks a string between words into lines of at most `width` characters, unless a word is longer. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
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
