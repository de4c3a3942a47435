import Table from 'cli-table3';
import type { LockHolder, MasterReport } from '../index.js';
import type * as admin from '../admin/admin.js';
import { display, inspections } from '../internal.js';
import { createInterface } from 'node:readline';

const MAX_SAID = 200;

// In columns.
const LINE = 100;
const MIN_COLUMN = 12;

export type Paint = (line: string, cell: { readonly row: readonly string[]; readonly column: number }) => string;

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

// A line that would be too long takes from the widest columns first.
function widthsFor(rows: readonly (readonly string[])[]): number[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  // Each cell has a space on both sides and a border.
  const room = LINE - 1 - 3 * widths.length;
  while (widths.reduce((sum, width) => sum + width, 0) > room) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

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

// A terminal would interpret control characters in a server's message as commands.
export function plain(text: string): string {
  return text.replace(/\p{C}/gu, '?').slice(0, MAX_SAID);
}

const MAX_SLOTS = 10;

export function sharedByWords(sharedBy: number): string {
  return `shared by ${display.counted(sharedBy, 'holder')}`;
}

export function heldBy({ instance, since }: LockHolder): string {
  return `${instance} for ${display.duration(Math.max(0, Date.now() - since.getTime()))}`;
}

export function slotsWords(slots: readonly number[]): string {
  const more = slots.length > MAX_SLOTS ? ` and ${slots.length - MAX_SLOTS} more` : '';
  const shown = slots.slice(0, MAX_SLOTS).map((slot) => `#${slot}`);
  return shown.join(', ') + more;
}

// Its holder cannot extend it any more.
export function isReleasedByForce(masters: readonly MasterReport[]): boolean {
  const revoked = masters.filter(({ answer }) => answer?.kind === 'held' && answer.revoked).length;
  return inspections.isTakenAway(revoked, masters.length);
}

// The operator may have typed the name of a key instead of that of a lock.
export function prefixHint(resource: string, { keyPrefix }: admin.Settings): string | undefined {
  if (keyPrefix === '' || !resource.startsWith(keyPrefix) || resource === keyPrefix) return undefined;
  const [prefix, name] = [display.showNames([keyPrefix]), display.showNames([resource.slice(keyPrefix.length)])];
  return `${prefix} is the prefix of the keys; the lock with the key ${display.showNames([resource])} is named ${name}`;
}

type Style = 'bold' | 'red' | 'green' | 'yellow';

export interface Terminal {
  print(text: string): void;
  complain(text: string): void;
  // `undefined` at the end of the input.
  ask(question: string): Promise<string | undefined>;
  paint(style: Style, text: string): string;
}

const CODES: Readonly<Record<Style, number>> = { bold: 1, red: 31, green: 32, yellow: 33 };

// Questions go to stderr, because stdout may go into a file.
export function processTerminal({ stdin, stdout, stderr } = process): Terminal {
  // Only a terminal has the method. It also respects NO_COLOR, FORCE_COLOR and the type of the terminal.
  const hasColours = stdout.isTTY && stdout.hasColors();
  // A reader that closes the pipe early, such as `head`, ends the program.
  stdout.on('error', () => process.exit());
  return {
    print: (text) => void stdout.write(`${text}\n`),
    complain: (text) => void stderr.write(`${text}\n`),
    ask: (question) =>
      new Promise((resolve) => {
        stderr.write(question);
        const lines = createInterface({ input: stdin });
        lines.once('line', (line) => {
          resolve(line);
          lines.close();
        });
        lines.once('close', () => resolve(undefined));
      }),
    paint: (style, text) => (hasColours ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text),
  };
}
