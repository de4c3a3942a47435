// npm run bench:page [-- --check]: computes the tables of docs/performance.md from results.md, and draws the charts.
// --check writes nothing, and fails if one of them is not what the results give.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { optionsOf } from '../../scripts/options.mjs';
import { markdownTable, withPart } from '../../scripts/page.mjs';
import { root } from '../../scripts/run.mjs';
import { figure } from './report.mjs';

const BEGIN = /<!-- bench (\w+): begin -->/;

/** A function that finds a table in the results by its suite and the beginning of its title. */
function tablesOf(results) {
  const suites = new Map();
  const [, ...parts] = results.split(BEGIN);
  for (let i = 0; i < parts.length; i += 2) suites.set(parts[i], parts[i + 1].split('<!--')[0].split('\n\n'));
  const all = (suite, title) =>
    (suites.get(suite) ?? []).flatMap((block, i, blocks) => (block.startsWith(title) ? [blocks[i + 1]] : []));
  const table = (suite, title) => {
    const found = all(suite, title);
    if (found.length !== 1) throw new Error(`${suite} has ${found.length} tables "${title}", and not one`);
    return new Table(`${suite}, ${title}`, found[0]);
  };
  return Object.assign(table, { has: (suite, title) => all(suite, title).length > 0 });
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
  'redis-kit': '@redis-kit/lock',
  'floor-ioredis': 'bare commands, ioredis',
};

const titleOf = (contender) => TITLES[contender] ?? contender;

const MASTERS = [1, 3, 5];
const PEERS = ['redlock5', 'redlock-universal', 'redis-semaphore', 'redis-kit', 'effect-distributed-lock'];
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
    capacity: capacityPart(cost),
  };
}

/** To the bare commands, as the rounds were compared. */
function librariesPart(cost, latency) {
  const beside = (found, name, column) => (found.names.includes(name) ? found.text(name, column, 1) : '');
  const of = (name, found, column, numbers) => numbers.map((masters) => beside(found(masters), name, column));
  return markdownTable([
    ['', 'locks/s, 1 master', '3', '5', 'CPU, 5', 'time, 1', '3', '5'],
    ...['ours', 'ours-plain', ...PEERS].map((name) => [
      titleOf(name),
      ...[...of(name, cost, RATE, MASTERS), ...of(name, cost, CPU, [5]), ...of(name, latency, P50, MASTERS)],
    ]),
  ]);
}

/** The rivals that a table of waiting compares with, each with the better of its two ways to wait. */
const RIVALS = ['redlock5', 'redis-kit', 'redlock-universal', 'redis-semaphore'];

function waitingPart(table) {
  const crowds = ['8 processes x 1', '4 processes x 8', '1 process x 128'];
  const rows = MASTERS.flatMap((masters) =>
    crowds.flatMap((crowd) => {
      const title = `${masters} master${masters > 1 ? 's' : ''}, ${crowd} waiting`;
      // A peer that never ends also ends the measurement.
      if (!table.has('waiting', title)) return [];
      const found = table('waiting', title);
      const longest = RIVALS.flatMap((name) => [name, `${name}-10ms`])
        .filter((name) => found.names.includes(name))
        .map((name) => found.number(name, 'longest'));
      return [
        [
          `${masters}, ${crowd.replace(/ process(es)?/, '')}`,
          ...[found.text('ours', 'sections/s'), found.text('redlock5', 'sections/s', 1)],
          found.text('ours', 'to another process p50').replace('-', ''),
          ...[found.text('ours', 'longest'), figure(Math.min(...longest))],
        ],
      ];
    }),
  );
  return markdownTable([
    [...['masters, waiters', 'sections/s', 'to `redlock` 5', 'hand-over, ms', 'longest wait, ms', 'best other']],
    ...rows,
  ]);
}

/** What the masters of one set carry before the thread of one of them is full, from their CPU for each lock. */
function capacityPart(cost) {
  const rate = (masters, atATime) =>
    thousands((masters * 1e6) / cost(masters, atATime).number('ours', 'server us/lock'));
  const core = (masters, atATime) => thousands(1e6 / cost(masters, atATime).number('ours', CPU));
  return markdownTable([
    ['locks/s that one set carries', ...MASTERS.map((masters) => (masters === 1 ? '1 master' : String(masters)))],
    ...['16 at a time', PROMISED].flatMap((atATime) => [
      [`masters, ${atATime} in each process`, ...MASTERS.map((masters) => rate(masters, atATime))],
      [`a core of a process, ${atATime}`, ...MASTERS.map((masters) => core(masters, atATime))],
    ]),
  ]);
}

const thousands = (value) => `${figure(value / 1000)}k`;

const FLOOR = 'floor-ioredis';
const SHOWN = [FLOOR, 'ours', 'ours-plain', ...PEERS.filter((name) => name !== 'effect-distributed-lock')];

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
.small { font-size: 10px; } .frame { fill: none; stroke: #c8ccd1; }
.curve { fill: none; stroke: #1a7f37; stroke-width: 2; } .expected { fill: none; stroke: #8c959f; stroke-dasharray: 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .note { fill: #9198a1; }
  .ours { fill: #3fb950; } .peer { fill: #6e7681; } .floor { fill: #3d444d; }
  .spread { stroke: #e6edf3; } .frame { stroke: #3d444d; }
  .curve { stroke: #3fb950; } .expected { stroke: #6e7681; }
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
  return svg({ width: WIDTH, height }, title, [text(10, 18, title, 'start', 'head'), ...labels, ...first, ...second]);
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
const count = (value) => value.toLocaleString('en');
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

/** Beside the tables, there is room for long titles. */
const SHORT = {
  'permits of a name, all but eight of them held': 'permits, nearly all held',
  'calls that wait for one key': 'calls that wait, one key',
  'calls that wait for as many keys': 'calls that wait, a key each',
  'locks that are held and extended': 'locks held and extended',
  'masters, 64 locks at a time': 'masters',
  'jobs on three processes, each due every 2 s': 'jobs on three processes',
};

const CURVE = { width: 148, height: 74, left: 14, top: 44, columns: 4, gapX: 28, gapY: 62 };

/** Draws each curve on logarithmic axes, with the line of the expected order through its middle. */
function growthChart(table) {
  const found = table('growth', 'Exponents');
  const { width, height, left, top, columns, gapX, gapY } = CURVE;
  const curves = found.names.map((name, i) => {
    const [title, column] = name.split(': ');
    const source = table('growth', `Growth: ${title}`);
    const points = source.names.map((x) => [Number(x), source.number(x, column)]).filter(([, y]) => y > 0);
    const x = left + (i % columns) * (width + gapX);
    const y = top + Math.floor(i / columns) * (height + gapY);
    const [order, exponent] = ['expected', 'exponent'].map((cell) => found.text(name, cell));
    return panelOf({ title, column: `${column}: ${exponent}`, points, order, x, y });
  });
  const total = {
    width: left * 2 + columns * width + (columns - 1) * gapX,
    height: top + Math.ceil(found.names.length / columns) * (height + gapY) - 24,
  };
  return svg(total, 'How each cost grows, on logarithmic axes', curves.flat());
}

function panelOf({ title, column, points, order, x, y }) {
  const { width, height } = CURVE;
  const logs = points.map((point) => point.map(Math.log10));
  const [low, high] = [0, 1]
    .map((axis) => logs.map((point) => point[axis]))
    .map((all) => [Math.min(...all), Math.max(...all)]);
  // The same length for a power of ten on both axes: a linear curve has the same slope in all panels.
  const unit = width / (low[1] - low[0]);
  const middleY = (high[0] + high[1]) / 2;
  const at = ([a, b]) => [round(x + (a - low[0]) * unit), round(y + height / 2 - ((b - middleY) * unit) / 2)];
  const middleX = (low[0] + low[1]) / 2;
  const slope = order === 'linear' ? 1 : 0;
  const expected = [low[0], low[1]].map((a) => at([a, middleY + slope * (a - middleX)]));
  const [first, last] = [points[0], points.at(-1)];
  return [
    `<rect class="frame" x="${x}" y="${y}" width="${width}" height="${height}"/>`,
    `<polyline class="expected" points="${expected.join(' ')}"/>`,
    `<polyline class="curve" points="${logs.map(at).join(' ')}"/>`,
    text(x, y - 22, SHORT[title] ?? title, 'start', 'head small'),
    text(x, y - 9, column, 'start', 'note small'),
    text(x, y + height + 9, count(first[0]), 'start', 'note small'),
    text(x + width, y + height + 9, count(last[0]), 'end', 'note small'),
  ];
}

function svg({ width, height }, title, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
${parts.join('\n')}
</svg>
`;
}

const PAGE = join(root, 'docs/performance.md');

const { values: options } = optionsOf({ options: { check: { type: 'boolean', default: false } } });
const table = tablesOf(await readFile(join(import.meta.dirname, 'results.md'), 'utf8'));
const written = [
  [PAGE, await pageOf(await readFile(PAGE, 'utf8'))],
  [join(root, 'docs/performance.svg'), chartOf(table)],
  [join(root, 'docs/growth.svg'), growthChart(table)],
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
