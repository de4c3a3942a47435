// npm run site: builds the documentation site in build/site, with the reference of the API. Dead links are errors.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ensureDependencies } from '../scripts/ensure-dependencies.mjs';
import { mustRun } from '../scripts/run.mjs';
import { allPages, images, root, textOf } from './pages.mjs';

const here = import.meta.dirname;
const staged = join(here, '.pages');
const out = join(root, 'build/site');

await ensureDependencies();
await ensureGenerator();
const { groups, contents } = await allPages();
const pages = [...groups.flatMap((group) => group.pages), contents];
await rm(staged, { recursive: true, force: true });
for (const page of pages) await writePage(page);
await stageFiles();
await mustRun('npm', ['run', '--silent', 'docs']);
await mustRun(
  process.execPath,
  [join(here, 'node_modules/vitepress/bin/vitepress.js'), 'build', staged, '--outDir', out],
  {
    cwd: here,
  },
);
await cp(join(root, 'build/api'), join(out, 'api'), { recursive: true });
await rm(staged, { recursive: true, force: true });
console.log(`${pages.length} pages and the reference of the API in build/site`);

async function ensureGenerator() {
  const wanted = JSON.parse(await readFile(join(here, 'package-lock.json'), 'utf8')).packages;
  const installed = await readFile(join(here, 'node_modules/.package-lock.json'), 'utf8').then(JSON.parse, () => ({}));
  const isThere = installed.packages?.['node_modules/vitepress']?.version === wanted['node_modules/vitepress'].version;
  if (isThere) return;
  console.log('The generator of the site is not installed: npm ci in site');
  await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here });
}

async function writePage(page) {
  const file = join(staged, page[0]);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, await textOf(page, pages));
}

async function stageFiles() {
  const folder = join(staged, '.vitepress');
  await mkdir(folder, { recursive: true });
  await mkdir(join(staged, 'public'), { recursive: true });
  for (const image of await images()) await cp(image, join(staged, 'public', basename(image)));
  await cp(join(here, 'config.mjs'), join(folder, 'config.mjs'));
  const sidebar = groups.map(({ text, pages: items }) => ({
    text,
    collapsed: text === 'Samples',
    items: items.map(([target, , title]) => ({ text: title, link: `/${target.replace(/(?:index)?\.md$/, '')}` })),
  }));
  await writeFile(join(folder, 'sidebar.json'), JSON.stringify(sidebar));
}
