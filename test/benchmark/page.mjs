// npm run bench:page [-- --check]: computes the tables of docs/performance.md from results.md, and draws the chart.
// --check writes nothing, and fails if one of the two is not what the results give.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { optionsOf } from '../../scripts/options.mjs';
import { markdownTable, withPart } from '../../scripts/page.mjs';
import { root } from '../../scripts/run.mjs';
import { figure, times } from './report.mjs';

const BEGIN = /<!-- bench (\w+): begin -->/;

/** A function that finds a table in the results by its suite and the beginning of its title. */
function tablesOf(results) {
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

/** What the contenders are called where users read of them. */
const TITLES = {
  ours: 'nestjs-redlock',
  'ours-plain': 'nestjs-redlock, guard off',
  redlock5: 'redlock 5',
  redlock4: 'redlock 4',
  'redis-kit': '@redis-kit/lock',
  'nest-redlock': '@anchan828/nest-redlock',
  'floor-ioredis': 'bare commands, ioredis',
};

const titleOf = (contender) => TITLES[contender] ?? contender;

const MASTERS = [1, 3, 5];
const LIBRARIES = [
  ...['ours', 'ours-plain', 'redlock5', 'redlock4', 'redlock-universal', 'redis-semaphore', 'redis-kit'],
  ...['nest-redlock', 'murlock'],
];
const PROMISED = '64 at a time';
const P50 = 'and release p50';
const CPU = 'client us/lock';
const RATE = 'locks/s';

/** The parts of docs/performance.md, as Markdown, by their names. */
function partsOf(table) {
  const cost = (masters, atATime = PROMISED) => table('cost', `N = ${masters}, ${atATime}`);
  const latency = (masters) => table('latency', `N = ${masters}, one at a time`);
  return {
    libraries: librariesPart(cost, latency),
    waiting: waitingPart(table),
    features: featuresPart(table, cost, latency),
    failing: failingPart(table),
  };
}

/** To the bare commands, as the rounds were compared. */
function librariesPart(cost, latency) {
  const beside = (found, name, column) => (found.names.includes(name) ? found.text(name, column, 1) : '');
  const row = (title, name, many, one) => [
    ...[title, beside(many(1), name, RATE), beside(many(3), name, RATE), beside(many(3), name, CPU)],
    ...(one ? [beside(one(1), name, P50), beside(one(3), name, P50)] : ['', '']),
  ];
  return markdownTable([
    ['', 'locks/s, 1 master', 'locks/s, 3', 'CPU, 3', 'time, 1', 'time, 3'],
    ...LIBRARIES.map((name) => row(titleOf(name), name, cost, latency)),
    row(`${titleOf('ours')}, 16 at a time`, 'ours', (masters) => cost(masters, '16 at a time')),
  ]);
}

function waitingPart(table) {
  const rows = [1, 5].flatMap((masters) =>
    ['8 processes x 1', '4 processes x 8'].map((crowd) => {
      const found = table('waiting', `${masters} master${masters > 1 ? 's' : ''}, ${crowd} waiting`);
      return [
        `${masters}, ${crowd.replace('processes ', '')}`,
        ...['ours', 'redlock5', 'redlock5-10ms'].map((name) => found.text(name, 'hand-offs/s')),
        found.text('redlock5', 'sections/s', 1),
        ...['ours', 'redlock5', 'redlock5-10ms'].map((name) => found.text(name, 'longest')),
      ];
    }),
  );
  return markdownTable([
    [
      ...['masters, waiters', 'hand-offs/s', '`redlock`', 'at 10 ms', 'sections/s to `redlock`'],
      ...['longest wait, ms', '`redlock`', 'at 10 ms'],
    ],
    ...rows,
  ]);
}

/** Ratios of the medians of two rows of one table or, for the number of masters, of two tables of one run. */
function featuresPart(table, cost, latency) {
  const quotient = (found, column, row, base, baseOf = found) =>
    times(found.number(row, column) / baseOf.number(base, column));
  const guard = (of, column) => MASTERS.map((masters) => quotient(of(masters), column, 'ours', 'ours-plain'));
  const masters = (of, column) => MASTERS.map((n) => quotient(of(n), column, 'ours', 'ours', of(1)));
  const shared = (n) => table('sharing', `N = ${n}, one at a time`).text('shared', 'to exclusive');
  const permits = (n) =>
    table('sharing', `N = ${n}, 64 callers`).text('locks on 10 keys', '10 permits of one name / it');
  const call = (name) => table('nest', 'A locked call on one master').text(name, 'to acquire and release');
  return markdownTable([
    ['', '1 master', '3', '5'],
    ['guard: CPU', ...guard(cost, CPU)],
    ['guard: time', ...guard(latency, P50)],
    ['masters: CPU', ...masters(cost, CPU)],
    ['masters: time', ...masters(latency, P50)],
    ['shared: time', shared(1), shared(3), ''],
    ['permits: locks/s', permits(1), permits(3), ''],
    ['`withLock`: CPU', call('LockService.withLock'), '', ''],
    ['`@WithLock`: CPU', call('@WithLock'), '', ''],
  ]);
}

function failingPart(table) {
  const scenes = {
    'one slow': 'One of five slower',
    'one hung': 'One hung of five, 8',
    'one dead': 'One dead',
    'two dead': 'Two dead',
  };
  const names = ['ours', 'redlock5', 'redis-semaphore'];
  return markdownTable([
    ['', ...names.map(titleOf)],
    ...Object.entries(scenes).map(([title, scene]) => {
      const found = table('failing', scene);
      return [title, ...names.map((name) => found.text([name, 'failing'], 'p99 to all up'))];
    }),
  ]);
}

const FLOOR = 'floor-ioredis';
const SHOWN = [
  ...[FLOOR, 'ours', 'ours-plain', 'redlock5', 'redlock4', 'redlock-universal', 'redis-semaphore', 'redis-kit'],
  'nest-redlock',
];

const ROW = 22;
const BAR = 12;
const LABELS = 196;
const PANEL = 190;
const GAP = 68;
const TOP = 56;
const WIDTH = LABELS + 2 * PANEL + 2 * GAP;

// The colours suit a light page and a dark one, because GitHub shows a picture with the reader's preference.
const STYLE = `
text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
.head { font-weight: 600; } .note { fill: #59636e; }
.ours { fill: #1a7f37; } .peer { fill: #8c959f; } .floor { fill: #c8ccd1; }
.spread { stroke: #1f2328; stroke-opacity: 0.55; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .note { fill: #9198a1; }
  .ours { fill: #3fb950; } .peer { fill: #6e7681; } .floor { fill: #3d444d; }
  .spread { stroke: #e6edf3; }
}`;

/** Draws many locks at a time beside one lock at a time, on three masters, as the results have them. */
function chartOf(table) {
  const many = table('cost', 'N = 3, 64 at a time');
  const one = table('latency', 'N = 3, one at a time');
  const rows = SHOWN.map((name) => ({
    name,
    rate: many.range(name, 'locks/s'),
    time: one.range(name, 'and release p50'),
  })).sort((a, b) => b.rate.median - a.rate.median);
  const height = TOP + rows.length * ROW + 12;
  const labels = rows.map(({ name }, i) =>
    text(LABELS - 10, middle(i), titleOf(name), 'end', isOurs(name) ? 'head' : ''),
  );
  const first = panel('locks/s, 64 at a time: more is better', LABELS, rows, ({ rate }) => rate);
  const second = panel('ms, one at a time: less is better', LABELS + PANEL + GAP, rows, ({ time }) => time);
  const title = 'A lock, acquired and released on three masters';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
${[text(10, 18, title, 'start', 'head'), ...labels, ...first, ...second].join('\n')}
</svg>
`;
}

/** Draws bars of the medians, a line from the smallest to the largest round, and the median as a number. */
function panel(heading, left, rows, of) {
  const longest = Math.max(...rows.map((row) => of(row).max));
  const scale = (value) => round((value / longest) * PANEL);
  const bars = rows.flatMap((row, i) => {
    const { median, min, max } = of(row);
    const y = middle(i);
    return [
      `<rect class="${classOf(row.name)}" x="${left}" y="${y - BAR / 2}" width="${scale(median)}" height="${BAR}" rx="2"/>`,
      `<line class="spread" x1="${left + scale(min)}" x2="${left + scale(max)}" y1="${y}" y2="${y}"/>`,
      text(left + scale(max) + 6, y, shown(median), 'start'),
    ];
  });
  return [text(left, TOP - 12, heading, 'start', 'note'), ...bars];
}

const middle = (row) => TOP + row * ROW + ROW / 2 - 2;
const round = (value) => Math.round(value * 10) / 10;
const shown = (value) => (value >= 1000 ? `${figure(value / 1000)}k` : figure(value));

const isOurs = (name) => name === 'ours' || name === 'ours-plain';

function classOf(name) {
  if (isOurs(name)) return 'ours';
  return name === FLOOR ? 'floor' : 'peer';
}

function text(x, y, content, anchor, style = '') {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" dominant-baseline="middle" class="${style}">${content}</text>`;
}

const PAGE = join(root, 'docs/performance.md');
const CHART = join(root, 'docs/performance.svg');

const { values: options } = optionsOf({ options: { check: { type: 'boolean', default: false } } });
const table = tablesOf(await readFile(join(import.meta.dirname, 'results.md'), 'utf8'));
const written = [
  [PAGE, await pageOf(await readFile(PAGE, 'utf8'))],
  [CHART, chartOf(table)],
];
for (const [file, text] of written) {
  if (!options.check) await writeFile(file, text);
  else if ((await readFile(file, 'utf8')) !== text) {
    console.error(`${file} differs from test/benchmark/results.md: npm run bench:page`);
    process.exitCode = 1;
  }
}

async function pageOf(page) {
  for (const [name, text] of Object.entries(partsOf(table))) page = await withPart(page, PAGE, name, text);
  return page;
}
