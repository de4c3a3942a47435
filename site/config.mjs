// The configuration of VitePress. build.mjs copies it beside the pages.
import { readFileSync } from 'node:fs';

const sidebar = JSON.parse(readFileSync(new URL('sidebar.json', import.meta.url), 'utf8'));

export default {
  title: 'nestjs-redlock',
  description: 'Distributed locks for NestJS: the Redlock algorithm over independent Redis masters',
  lang: 'en',
  cleanUrls: false,
  // Relative links work under any path, also from a folder on a disk behind a plain server.
  base: process.env.SITE_BASE ?? '/',
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [
      { text: 'Guide', link: '/setup' },
      { text: 'Operations', link: '/operations' },
      { text: 'Promises', link: '/promises' },
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
