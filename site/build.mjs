// npm run site: builds the documentation site in build/site, with the reference of the API. Dead links are errors.
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { ensureDependencies } from '../scripts/ensure-dependencies.mjs';
import { mustRun } from '../scripts/run.mjs';
import { homePage, llmsText } from './home.mjs';
import { allPages, images, root, textOf } from './pages.mjs';

const here = import.meta.dirname;
const staged = join(here, '.pages');
const out = join(root, 'build/site');

await ensureDependencies();
await ensureGenerator();
const { groups, contents } = await allPages();
const pages = [...groups.flatMap((group) => group.pages), contents];
await rm(staged, { recursive: true, force: true });
await stageFiles();
await stagePage('index.md', await homePage(groups));
for (const page of pages) await stagePage(page[0], classOf(page) + (await textOf(page, pages)));
await mustRun('npm', ['run', '--silent', 'docs']);
await mustRun(
  process.execPath,
  [join(here, 'node_modules/vitepress/bin/vitepress.js'), 'build', staged, '--outDir', out],
  {
    cwd: here,
  },
);
await cp(join(root, 'build/api'), join(out, 'api'), { recursive: true });
await linkBack(join(out, 'api'));
for (const [page] of pages) await cp(join(staged, page), join(out, page));
await writeFile(join(out, 'llms.txt'), await llmsText(groups));
await rm(staged, { recursive: true, force: true });
console.log(`${pages.length} pages and the reference of the API in build/site`);

/** From each page of the reference to the home page: the generator of the reference knows no relative addresses there. */
async function linkBack(folder) {
  for (const file of await readdir(folder, { recursive: true })) {
    if (!file.endsWith('.html')) continue;
    const home = `${'../'.repeat(file.split(sep).length)}index.html`;
    const text = await readFile(join(folder, file), 'utf8');
    await writeFile(join(folder, file), text.replaceAll('href="https://guide.invalid"', `href="${home}"`));
  }
}

async function ensureGenerator() {
  const wanted = JSON.parse(await readFile(join(here, 'package-lock.json'), 'utf8')).packages;
  const installed = await readFile(join(here, 'node_modules/.package-lock.json'), 'utf8').then(JSON.parse, () => ({}));
  const isThere = installed.packages?.['node_modules/vitepress']?.version === wanted['node_modules/vitepress'].version;
  if (isThere) return;
  console.log('The generator of the site is not installed: npm ci in site');
  await mustRun('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: here });
}

/** For the style of the page alone. */
function classOf([target]) {
  return target === 'options.md' ? '---\npageClass: options\n---\n\n' : '';
}

async function stagePage(target, text) {
  const file = join(staged, target);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

async function stageFiles() {
  const folder = join(staged, '.vitepress');
  await mkdir(folder, { recursive: true });
  await mkdir(join(staged, 'public'), { recursive: true });
  for (const image of await images()) await cp(image, join(staged, 'public', basename(image)));
  await cp(join(here, 'config.mjs'), join(folder, 'config.mjs'));
  await cp(join(here, 'theme'), join(folder, 'theme'), { recursive: true });
  const html = (target) => `/${target.replace(/md$/, 'html')}`;
  const sidebar = groups.map(({ text, about, pages: items }) => ({
    text,
    collapsed: about === undefined,
    items: items.map(([target, , title]) => ({ text: title, link: html(target) })),
  }));
  const doors = sidebar.filter(({ collapsed }) => !collapsed);
  const nav = doors.map(({ text, items }) => ({
    text,
    link: items[0].link,
    activeMatch: `^(?:${items.map(({ link: page }) => page.replace('.html', '')).join('|')})$`,
  }));
  const rings = groups.flatMap(({ pages: items }, ring) => items.map(([target]) => [html(target), ring]));
  await writeFile(join(folder, 'site.json'), JSON.stringify({ sidebar, nav, rings: Object.fromEntries(rings) }));
}
