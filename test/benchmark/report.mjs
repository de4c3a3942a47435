/** What was printed, for the page that is generated. */
const printed = [];

/** Returns the tables since the last call, as Markdown. */
export const takeTables = () => printed.splice(0).join('\n\n');

/** Prints a table: one array per row, the first one with the headings. */
export function printTable(title, rows) {
  const texts = rows.map((row) => row.map(String));
  const widths = texts[0].map((_, column) => Math.max(...texts.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((text, i) => (i === 0 ? text.padEnd(widths[i]) : text.padStart(widths[i]))).join(' | ')} |`;
  const [head, ...body] = texts;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  const table = `${title}\n\n${[line(head), rule, ...body.map(line)].join('\n')}`;
  printed.push(table);
  console.log(`\n${table}`);
}

/** Prints each promise, and whether it was kept. */
export function printChecks(checks) {
  if (checks.length === 0) return;
  const rows = checks.map(({ promise, found, kept }) => [promise, found, kept ? 'pass' : 'FAIL']);
  printTable('Promises', [['promise', 'found', ''], ...rows]);
}

/** Three significant digits. */
export function figure(value) {
  if (value === Infinity) return 'inf';
  if (!Number.isFinite(value)) return '-';
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(2, 2 - digits)));
}

export const times = (ratio) => `${figure(ratio)}x`;

/** Median, smallest and largest value. */
export const range = ({ median, min, max }) =>
  Number.isFinite(median) ? `${figure(median)} (${figure(min)}-${figure(max)})` : '-';

// Checks: the promise, the result, and whether the result keeps the promise.

export const atLeast = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio >= bound });
export const atMost = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio <= bound });
export const below = (promise, ratio, bound) => ({ promise, found: times(ratio), kept: ratio < bound });
export const exactly = (promise, value, wanted) => ({ promise, found: figure(value), kept: value === wanted });

/** A check of a figure with a unit. */
export const noMore = (promise, value, unit, bound) => ({
  promise,
  found: `${figure(value)} ${unit}`,
  kept: value <= bound,
});

/**
 * The bounds of what this library promises beside its peers, each in this place only. With every safety feature on, on
 * pinned processors, as ratios unless a unit is given.
 */
export const GOALS = {
  /** N = 5, 64 at a time: the most client CPU per lock, to `redlock5`. */
  clientCpu: 0.17,
  /** N = 5, 64 at a time: the most CPU of all servers per lock, to `redlock5`. */
  serverCpu: 0.4,
  /** Each N, 64 at a time: the fewest locks per second, to the fastest peer. */
  rate: 2,
  /** Each N, one at a time: the longest median of acquire and release, to the fastest peer. */
  p50: 1.25,
  /** The same with 0.5 ms of network. */
  farP50: 1.03,
  /** Each N, one at a time: the longest 99th percentile of the first three seconds of a process, to `redlock5`. */
  firstP99: 1.5,
  /** 64 at a time: the most client CPU of a call by `@WithLock`, to `acquire` and `release`. */
  decorator: 1.12,
  /** 4 processes x 8 waiters: the fewest sections per second, to `redlock5` with its defaults. */
  sectionsOfProcesses: 4,
  /** 128 waiters of one process: the same. */
  sectionsOfCallers: 1.15,
  /** 8 processes x 1 waiter: the longest median from a release to work in another process, in PINGs. */
  handOff: 5,
  /** The longest wait, to that of sections that go round. */
  longestWait: 1.5,
  /** The most memory of a held lock that is extended, in KiB. */
  heldKiB: 0.8,
};
