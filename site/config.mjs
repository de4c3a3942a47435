// The configuration of VitePress. build.mjs copies it beside the pages.
import { readFileSync } from 'node:fs';

const { sidebar, nav, rings } = JSON.parse(readFileSync(new URL('site.json', import.meta.url), 'utf8'));

// Relative links work under any path, also from a folder on a disk behind a plain server.
const base = process.env.SITE_BASE ?? '/';

/** Each ring counts half as much as the one before. The browser gets the source of the function, so it holds the rings. */
const page = `id.slice(${base.length - 1}).split('#')[0]`;
const boostDocument = new Function('id', `return 0.5 ** (${JSON.stringify(rings)}[${page}] ?? 9)`);

export default {
  title: 'nestjs-redlock',
  description: 'Distributed locks for NestJS: the Redlock algorithm over independent Redis masters',
  lang: 'en',
  cleanUrls: false,
  base,
  // The comments of the default dark theme are too faint on its background.
  markdown: { theme: { light: 'github-light', dark: 'github-dark-default' } },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
    outline: { level: [2, 3] },
    notFound: {
      title: 'Page not found',
      quote: 'The address is mistyped, or the page has another name now. The search finds it by what it says.',
      linkText: 'To the first page',
      linkLabel: 'To the first page',
    },
    nav: [
      ...nav,
      // Outside VitePress, so the whole page is loaded.
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    sidebar,
  },
  // Fonts come from the reader's machine.
  head: [['meta', { name: 'color-scheme', content: 'light dark' }]],
  // The reference is copied to /api after the build.
  ignoreDeadLinks: [/^\/api\//],
};
