import { figure } from '../report.mjs';
import { titleOf } from './titles.mjs';

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
export function chartOf(table) {
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
