/** Lines of a table; the first row is its header, and the first column contains the names of the rows. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  |  ');
  const rule = widths.map((width) => '-'.repeat(width)).join('--+--');
  const [head, ...body] = rows.map(line);
  return [head, rule, ...body];
}

export function milliseconds(value) {
  return Number.isNaN(value) ? '-' : `${value.toFixed(2)} ms`;
}
