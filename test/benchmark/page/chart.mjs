import { figure } from '../report.mjs';
import { PROMISED } from './checks.mjs';
import { FLOOR, LIMIT, OURS, PLAIN } from './contenders.mjs';

const TITLES = {
  [OURS]: 'nestjs-redlock',
  [PLAIN]: 'nestjs-redlock, no fencing or guard',
  redlock5: 'redlock 5',
  redlock4: 'redlock 4',
  'redis-kit': '@redis-kit/lock',
  'nest-redlock': '@anchan828/nest-redlock',
  [FLOOR]: 'ioredis, commands only',
  [LIMIT]: 'socket, one write per tick',
};

const ROW = 24;
const BAR = 14;
const LABELS = 262;
const PANEL = 250;
const GAP = 84;
const TOP = 64;
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

/** Draws the results for one number of masters: CPU of the client per lock, and locks per second. */
export function plotOf({ masters, throughput }) {
  const { contenders } = throughput.find(({ concurrency }) => concurrency === PROMISED);
  const rows = Object.entries(contenders).sort(([, a], [, b]) => a.client.median - b.client.median);
  const height = TOP + rows.length * ROW + 12;
  const labels = rows.map(([name], i) =>
    text(LABELS - 10, middle(i), TITLES[name] ?? name, 'end', isOurs(name) ? 'head' : ''),
  );
  const first = panel('client CPU per lock, \u00b5s (less is better)', LABELS, rows, ({ client }) => client);
  const second = panel('locks per second (more is better)', LABELS + PANEL + GAP, rows, ({ rate }) => rate);
  const title = `One lock, acquired and released: ${masters} masters, ${PROMISED} at a time`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
${[text(10, 20, title, 'start', 'head'), ...labels, ...first, ...second].join('\n')}
</svg>
`;
}

/** Draws bars of the medians, a line from the smallest to the largest round, and the median as a number. */
function panel(heading, left, rows, of) {
  const longest = Math.max(...rows.map(([, found]) => of(found).max));
  const scale = (value) => round((value / longest) * PANEL);
  const bars = rows.flatMap(([name, found], i) => {
    const { median, min, max } = of(found);
    const y = middle(i);
    return [
      `<rect class="${classOf(name)}" x="${left}" y="${y - BAR / 2}" width="${scale(median)}" height="${BAR}" rx="2"/>`,
      `<line class="spread" x1="${left + scale(min)}" x2="${left + scale(max)}" y1="${y}" y2="${y}"/>`,
      text(left + scale(max) + 6, y, shown(median), 'start'),
    ];
  });
  return [text(left, TOP - 16, heading, 'start', 'note'), ...bars];
}

const middle = (row) => TOP + row * ROW + ROW / 2 - 4;
const round = (value) => Math.round(value * 10) / 10;
const shown = (value) => (value >= 1000 ? `${figure(value / 1000)}k` : figure(value));

const isOurs = (name) => name === OURS || name === PLAIN;

function classOf(name) {
  if (isOurs(name)) return 'ours';
  return name === FLOOR || name === LIMIT ? 'floor' : 'peer';
}

function text(x, y, content, anchor, style = '') {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" dominant-baseline="middle" class="${style}">${content}</text>`;
}
