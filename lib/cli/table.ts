import Table from 'cli-table3';

/** Rows under a head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // Its own colours would also go into files.
  const drawn = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  drawn.push(...rows.map((row) => [...row]));
  return drawn.toString();
}

/** Milliseconds, for people. */
export function milliseconds(value: number | undefined): string {
  if (value === undefined) return '-';
  if (Math.abs(value) >= 10_000) return `${(value / 1_000).toFixed(1)} s`;
  return `${value.toFixed(Math.abs(value) < 10 ? 1 : 0)} ms`;
}
