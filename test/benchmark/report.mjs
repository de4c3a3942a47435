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
