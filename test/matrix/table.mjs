/** The status of a cell in the words of a table. */
const MARKS = { ok: 'ok', 'n.a.': 'n.a.', failed: '**failed**' };

/**
 * A Markdown table with rows and columns in the order of the results. A cell whose parts differ lists those that are
 * not ok.
 */
export function tableOf(corner, results) {
  const columns = distinct(results.map(({ column }) => column));
  const rows = distinct(results.map(({ row }) => row)).map((row) => [
    row,
    ...columns.map((column) => cellOf(results.filter((each) => each.row === row && each.column === column))),
  ]);
  return markdown([[corner, ...columns], ...rows]);
}

/** Why cells are not applicable, each reason once. */
export function reasonsOf(results) {
  const reasons = results.filter(({ status }) => status === 'n.a.').map(({ reason }) => reason);
  return distinct(reasons)
    .map((reason) => `- n.a.: ${reason}`)
    .join('\n');
}

function cellOf(parts) {
  const statuses = distinct(parts.map(({ status }) => status));
  if (statuses.length === 0) return '';
  if (statuses.length === 1) return MARKS[statuses[0]];
  const odd = parts.filter(({ status }) => status !== 'ok').map(({ part, status }) => `${part} ${MARKS[status]}`);
  return [MARKS.ok, ...odd].join(', ');
}

function markdown([header, ...rows]) {
  const widths = header.map((_, i) => Math.max(3, ...[header, ...rows].map((row) => row[i].length)));
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function distinct(values) {
  return [...new Set(values)];
}
