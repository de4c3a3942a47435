// Checks that a table can be read without a scroll bar: the formatter makes each of its lines as long as its longest cells.
// The results of tests are written by commands, and may be wider.

const LONGEST = 300;

export function checkTables({ name, prose }) {
  if (name.startsWith('test/')) return [];
  const lines = prose.split('\n');
  const wide = (line) => line?.startsWith('|') && line.length > LONGEST;
  return lines.flatMap((line, i) =>
    wide(line) && !wide(lines[i - 1])
      ? [
          {
            file: name,
            line: i + 1,
            message: `the table has ${line.length} characters a line, and at most ${LONGEST} fit`,
          },
        ]
      : [],
  );
}
