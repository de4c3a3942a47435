const BEGIN = /<!-- bench (\w+): begin -->/;

/** A function that finds a table in the results by its suite and the beginning of its title. */
export function tablesOf(results) {
  const suites = new Map();
  const [, ...parts] = results.split(BEGIN);
  for (let i = 0; i < parts.length; i += 2) suites.set(parts[i], parts[i + 1].split('<!--')[0].split('\n\n'));
  return (suite, title) => {
    const blocks = suites.get(suite) ?? [];
    const found = blocks.flatMap((block, i) => (block.startsWith(title) ? [blocks[i + 1]] : []));
    if (found.length !== 1) throw new Error(`${suite} has ${found.length} tables "${title}", and not one`);
    return new Table(`${suite}, ${title}`, found[0]);
  };
}

class Table {
  #title;
  #head;
  #rows;

  constructor(title, text) {
    const [head, , ...rows] = text.split('\n').map((line) => line.slice(1, -1).split('|'));
    this.#title = title;
    this.#head = trimmed(head);
    this.#rows = rows.map(trimmed);
    // A first cell that is left out is the one above.
    for (const [i, row] of this.#rows.entries()) row[0] ||= this.#rows[i - 1][0];
  }

  /** The names of the rows, in order. */
  get names() {
    return this.#rows.map(([name]) => name);
  }

  /** A cell as it stands there, of the row with these first cells. `right` 1 is the cell to the right of it. */
  text(row, column, right = 0) {
    const first = [row].flat();
    const cells = this.#rows.find((candidate) => first.every((cell, i) => candidate[i] === cell));
    const at = this.#head.indexOf(column);
    if (!cells || at < 0) throw new Error(`"${this.#title}" has no cell "${first.join(', ')}" of "${column}"`);
    return cells[at + right];
  }

  number(row, column) {
    return Number.parseFloat(this.text(row, column));
  }

  /** Median, smallest and largest round. */
  range(row, column) {
    const [median, min = median, max = median] = this.text(row, column)
      .split(/[ ()-]+/)
      .map(Number);
    return { median, min, max };
  }
}

const trimmed = (cells) => cells.map((cell) => cell.trim());
