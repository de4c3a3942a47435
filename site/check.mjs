// npm run site:check: opens every page of the built site in a browser, at the width of a desk and of a phone. Fails on a
// page that is wider than the screen, asks another host for something, cannot be reached in two clicks, or has an error, on a
// home page that is higher than a desk, a search that does not begin with the first rings, and an llms.txt with a dead link.
import { createServer } from 'node:http';
import { mkdir, readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { ensureChromium } from '../scripts/programs.mjs';
import { allPages, root } from './pages.mjs';

const SITE = join(root, 'build/site');
const PICTURES = join(root, 'build/site-pictures');
const SIZES = { desk: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
/** Pages whose pictures are kept. */
const SHOWN = ['index.html', 'first-lock.html', 'locking.html', 'promises.html'];
const TYPES = {
  ...{ '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' },
  ...{
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.woff2': 'font/woff2',
    '.txt': 'text/plain',
    '.md': 'text/markdown',
  },
};

const { chromium } = await import('playwright-core');
const server = createServer(serve);
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: await ensureChromium(), args: ['--no-sandbox'] });
const problems = [];
await mkdir(PICTURES, { recursive: true });
try {
  const { groups, contents } = await allPages();
  const listed = groups.flatMap((group) => group.pages);
  const pages = [...listed, contents].map(([target]) => target.replace(/md$/, 'html'));
  for (const [size, viewport] of Object.entries(SIZES)) await visit(pages, size, viewport);
  await checkWaysBack();
  await checkClicks(pages);
  await checkSearch(groups);
  await checkList(listed.map(([target]) => target));
  for (const problem of problems) console.error(problem);
  console.log(`${pages.length} pages at ${Object.keys(SIZES).length} widths: ${problems.length} problems`);
} finally {
  await browser.close();
  server.close();
}
process.exitCode = problems.length > 0 ? 1 : 0;

async function visit(pages, size, viewport) {
  const page = await browser.newPage({ viewport, colorScheme: size === 'phone' ? 'dark' : 'light' });
  watch(page);
  for (const path of ['index.html', ...pages, 'api/index.html']) {
    await page.goto(`${origin}/${path}`, { waitUntil: 'load' });
    const overflow = await page.evaluate(() => globalThis.document.documentElement.scrollWidth - globalThis.innerWidth);
    if (overflow > 0) problems.push(`${path} is ${overflow} px wider than a ${size}`);
    if (path === 'index.html' && size === 'desk') await checkHeight(page);
    if ((await page.locator('h1').count()) === 0) problems.push(`${path} has no heading`);
    if (SHOWN.includes(path)) await page.screenshot({ path: join(PICTURES, `${path.slice(0, -5)}-${size}.png`) });
  }
  await page.close();
}

/** To the home page: from a page that does not exist, and from the reference of the API. */
async function checkWaysBack() {
  const page = await browser.newPage({ viewport: SIZES.desk });
  for (const path of ['404.html', 'api/index.html', 'api/classes/index.LockService.html']) {
    await page.goto(`${origin}/${path}`, { waitUntil: 'load' });
    // The page that does not exist is drawn by its script.
    const back = page
      .locator('a:is([href="/"], [href="/index.html"], [href$="../index.html"])')
      .filter({ visible: true });
    await back
      .first()
      .waitFor({ timeout: 20_000 })
      .catch(() => problems.push(`${path} has no way back to the home page`));
  }
  await page.close();
}

/** A page is reached by one click if the first page links to it, and by two if one of those pages does. */
async function checkClicks(pages) {
  const page = await browser.newPage({ viewport: SIZES.desk });
  const linksOf = async (path) => {
    await page.goto(`${origin}/${path}`, { waitUntil: 'load' });
    const links = await page.evaluate(() =>
      [...globalThis.document.querySelectorAll('a[href]')].map(({ href }) => href),
    );
    return links.filter((link) => link.startsWith(origin)).map((link) => link.slice(origin.length + 1).split('#')[0]);
  };
  const first = await linksOf('');
  const reached = new Set(['index.html', ...first]);
  for (const path of new Set(first))
    if (pages.includes(path)) for (const link of await linksOf(path)) reached.add(link);
  for (const path of pages) if (!reached.has(path)) problems.push(`${path} takes more than two clicks`);
  await page.close();
}

async function checkHeight(page) {
  const hidden = await page.evaluate(() => globalThis.document.documentElement.scrollHeight - globalThis.innerHeight);
  if (hidden > 0) problems.push(`the home page is ${hidden} px higher than a desk`);
}

/** What begins with a page of no ring, or with another one than the ring that the words belong to, is a problem. */
async function checkSearch(groups) {
  const page = await browser.newPage({ viewport: SIZES.desk });
  watch(page);
  await page.goto(origin, { waitUntil: 'load' });
  await page.locator('#local-search button').click();
  for (const [words, ring] of Object.entries({
    ...{ 'cron job': 'Guide', 'shutdown hooks': 'Guide', quarantine: 'In production' },
    ...{ upgrade: 'Guide', 'health 503': 'In production', 'second holder': 'Guide' },
  })) {
    await page.locator('#localsearch-input').fill(words);
    const found = page.locator('#localsearch-list a');
    await found
      .filter({ hasText: new RegExp(words.split(' ')[0], 'i') })
      .first()
      .waitFor({ timeout: 20_000 })
      .catch(() => problems.push(`the search finds nothing about ${words}`));
    const links = await found.evaluateAll((all) => all.slice(0, 5).map(({ pathname }) => pathname.slice(1)));
    const rings = links.map((link) =>
      groups.find(({ pages }) => pages.some(([target]) => target === link.replace(/html$/, 'md'))),
    );
    if (rings[0]?.text !== ring) problems.push(`the search for ${words} begins with ${links[0]}`);
    const outside = links.find((_, index) => rings[index]?.about === undefined);
    if (outside !== undefined) problems.push(`the search for ${words} has ${outside} among the first`);
  }
  await page.screenshot({ path: join(PICTURES, 'search-desk.png') });
  await page.close();
}

/** https://llmstxt.org: a title, a summary as a quotation, and lists of links below headings. */
async function checkList(pages) {
  const text = await (await fetch(`${origin}/llms.txt`)).text();
  const [title, summary, ...sections] = text.trim().split(/\n{2,}/);
  if (!/^# \S/.test(title) || !/^> \S/.test(summary))
    problems.push('llms.txt does not begin with a title and a summary');
  const lines = sections.flatMap((section) => section.split('\n'));
  const links = lines.flatMap((line) => /^- \[[^\]]+\]\(([^)]+)\)(?:: .+)?$/.exec(line)?.[1] ?? []);
  if (lines.some((line) => !/^(?:## |- )/.test(line)))
    problems.push('llms.txt has lines that are neither heading nor link');
  for (const link of links) {
    const response = await fetch(`${origin}/${link}`);
    if (!response.ok || !/^# /m.test(await response.text())) problems.push(`llms.txt: ${link} is no page`);
  }
  for (const page of pages) if (!links.includes(page)) problems.push(`llms.txt lacks ${page}`);
}

function watch(page) {
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`));
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${page.url()}: ${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:')) problems.push(`${page.url()} asks ${new URL(url).host}`);
  });
}

async function serve({ url }, response) {
  const path = normalize(decodeURIComponent(new URL(url, 'http://localhost').pathname));
  const file = join(SITE, path.endsWith('/') ? `${path}index.html` : path);
  const content = file.startsWith(SITE) ? await readFile(file).catch(() => undefined) : undefined;
  response.writeHead(content ? 200 : 404, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
  response.end(content);
}
