// npm run bench:page [-- --check]: computes the tables of docs/performance.md from results.md, and draws the chart.
// --check writes nothing, and fails if one of the two is not what the results give.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chartOf } from './page/chart.mjs';
import { partsOf } from './page/ratios.mjs';
import { tablesOf } from './page/tables.mjs';
import { optionsOf } from '../../scripts/options.mjs';
import { withPart } from '../../scripts/page.mjs';
import { root } from '../../scripts/run.mjs';

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
