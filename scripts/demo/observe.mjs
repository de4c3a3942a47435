// What the instances of sample/02-schedule have written, each line with the name of its instance at the end.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The number of reports for each second. An attempt after a crash counts only if the first one made none. */
export function reportsIn(store) {
  const reports = new Map();
  for (const [second, attempt] of linesOf(store, 'reports.log').map((line) => line.map(Number))) {
    if (attempt === 1 || !reports.has(second)) reports.set(second, (reports.get(second) ?? 0) + 1);
  }
  return reports;
}

/** Sums up the reports. `from` and `until` (exclusive) are the seconds in which all instances were running. */
export function countReports(reports, from, until) {
  const counts = Array.from({ length: Math.max(0, until - from) }, (_, index) => reports.get(from + index) ?? 0);
  const number = (isWanted) => counts.filter(isWanted).length;
  return {
    all: counts.length,
    once: number((n) => n === 1),
    twice: number((n) => n > 1),
    missed: number((n) => n === 0),
  };
}

/** The pages of the first import, in the order of time. */
export function pagesIn(store) {
  const lines = linesOf(store, 'import.log');
  return lines
    .filter(([tick]) => tick === lines[0][0])
    .map(([tick, page, attempt, instance]) => ({ tick, page: Number(page), attempt: Number(attempt), instance }));
}

/** How many different pages there are, and how many of them were imported more than once. */
export function countPages(pages) {
  const numbers = pages.map(({ page }) => page);
  const all = [...new Set(numbers)];
  return { all: all.length, twice: all.filter((page) => numbers.indexOf(page) !== numbers.lastIndexOf(page)).length };
}

function linesOf(store, log) {
  try {
    const lines = readFileSync(join(store, log), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => line.split(' '));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Lines of a table; the first row is its header, and the first column contains the names of the rows. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  |  ');
  const [head, ...body] = rows.map(line);
  return [head, widths.map((width) => '-'.repeat(width)).join('--+--'), ...body];
}
