import Table from 'cli-table3';
import { quorumOf } from '../core/acquire/quorum-call.js';
import { counted, duration, showNames } from '../core/display.js';
import type { MasterReport } from '../core/errors.js';
import type { LockHolder } from '../core/holder.js';
import type { LockInspection, SlotInspection } from '../core/operator/inspector.js';
import { driftOf, resolveSettings, type Settings } from '../core/settings/settings.js';
import { reasonFor, type Relation, relationOf } from '../redis/data-record.js';
import type { ServerIdentity } from '../redis/replies.js';
import { EARLY_FROM } from '../redis/guard/new-masters.js';
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
  return `shared by ${counted(sharedBy, 'holder')}`;
}

export function heldBy({ instance, since }: LockHolder): string {
  return `${instance} for ${duration(Math.max(0, Date.now() - since.getTime()))}`;
}

export function waitingWords(waiting: number): string {
  return `${waiting} ${waiting === 1 ? 'process waits' : 'processes wait'} in line`;
}

export function slotsWords(slots: readonly number[]): string {
  const more = slots.length > MAX_SLOTS ? ` and ${slots.length - MAX_SLOTS} more` : '';
  const shown = slots.slice(0, MAX_SLOTS).map((slot) => `#${slot}`);
  return shown.join(', ') + more;
}

export function summaryOf({ resource, state, remaining, masters }: LockInspection): string {
  const quorum = quorumOf(masters.length);
  const makes = `${quorum} ${quorum === 1 ? 'makes' : 'make'} a lock`;
  const count = `${heldOn(masters)} of ${counted(masters.length, 'master')}, ${makes}`;
  const left = state === 'held' && remaining !== undefined ? `, for ${duration(remaining)} unless it is extended` : '';
  return `${showNames([resource])} is ${state}${left} (held on ${count})`;
}

export function slotsTable(slots: readonly SlotInspection[]): string {
  return table(
    ['slot', 'state', 'remaining', 'masters', 'holder'],
    slots.map(({ slot, state, remaining, masters, holder }) => [
      ...[`#${slot}`, state, state === 'held' ? duration(remaining) : '-'],
      ...[`${heldOn(masters)} of ${masters.length}`, holder ? heldBy(holder) : '-'],
    ]),
  );
}

// To an inspection, `granted` means that the key is free.
export function asJson(inspection: LockInspection | SlotInspection): object {
  const masters = inspection.masters.map(({ master, answer }) => {
    return { master, answer: answer?.kind === 'granted' ? { kind: 'free' } : answer };
  });
  return { ...inspection, masters };
}

function heldOn(masters: readonly MasterReport[]): number {
  return masters.filter(({ answer }) => answer?.kind === 'held').length;
}

// SCAN compares bytes.
export function matcherOf(pattern: string): (text: string) => boolean {
  const source = bytes(pattern).replace(/\\(.)|\[(\^?)((?:\\.|[^\]\\])*)\]|(.)/gs, (...groups: string[]) => {
    const [, escaped, negation, members, single] = groups;
    if (members !== undefined) return members === '' ? NOTHING : `[${negation}${classOf(members)}]`;
    if (single === '*') return '.*';
    if (single === '?') return '.';
    return escapeFully(escaped ?? single ?? '');
  });
  const expression = new RegExp(`^(?:${source})$`, 's');
  return (text) => expression.test(bytes(text));
}

// An empty class of a pattern matches no character.
const NOTHING = '(?!)';

function classOf(members: string): string {
  return members.replace(/\\(.)|([^-])/gs, (_, escaped?: string, other?: string) =>
    escapeFully(escaped ?? other ?? ''),
  );
}

function escapeFully(character: string): string {
  return character.replace(/[^A-Za-z0-9]/gs, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function bytes(text: string): string {
  return Buffer.from(text).toString('latin1');
}

// The operator may have typed the name of a key in place of that of a lock.
export function prefixHint(resource: string, { keyPrefix }: Settings): string | undefined {
  if (keyPrefix === '' || !resource.startsWith(keyPrefix) || resource === keyPrefix) return undefined;
  const [prefix, name] = [showNames([keyPrefix]), showNames([resource.slice(keyPrefix.length)])];
  return `${prefix} is the prefix of the keys; the lock with the key ${showNames([resource])} is named ${name}`;
}

export interface MasterStanding {
  readonly data: Relation;
  // Milliseconds until its votes count, 0 if they count now; `undefined` if a process has to connect to it first.
  readonly wait: number | undefined;
  readonly reason: string;
}

const DEFAULTS = resolveSettings({});

// Judges as a process would that connects to the master now. `isDurable`: the applications declare that it is.
export function standingOf(report: ServerIdentity, isDurable = false): MasterStanding {
  const { marker } = report;
  const data = relationOf(report, { isDurable, nonce: '' });
  if (!marker) return { data, wait: undefined, reason: 'no process has met its data yet' };
  if (data === 'unknown') {
    return { data, wait: undefined, reason: `${reasonFor(report, marker)}, and no process has met it since` };
  }
  if (data === 'renamed') {
    const change = marker.run === report.run ? 'its history has another name' : 'it was restarted with all of its data';
    return { data, wait: undefined, reason: `${change}, and no process has met it since` };
  }
  const left = Math.max(0, Math.min(marker.from - report.time, marker.wait));
  return { data, wait: left, reason: marker.reason };
}

// In milliseconds, if no ttl is longer than `maxTtl`. A clock that was set back cannot lengthen it.
export function quarantineFor(maxTtl: number): number {
  return Math.ceil(maxTtl + driftOf(DEFAULTS, maxTtl));
}

// In milliseconds; `undefined` if a process has to connect to the masters first.
export function waitForQuorum(waits: readonly (number | undefined)[], masters: number): number | undefined {
  const sorted = waits.map((wait) => wait ?? Infinity).sort((a, b) => a - b);
  const wait = sorted[quorumOf(masters) - 1] ?? Infinity;
  return wait === Infinity ? undefined : wait;
}

// A process without locks lets all masters vote early: none votes yet, and no holder has vetoed.
export function mayVoteEarly(reports: readonly (ServerIdentity | undefined)[]): boolean {
  return (
    reports.length >= EARLY_FROM &&
    reports.every((report) => {
      if (!report) return false;
      const { data, wait } = standingOf(report);
      return data === 'unknown' || (data === 'known' && wait !== 0 && report.marker?.isVetoed === false);
    })
  );
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
