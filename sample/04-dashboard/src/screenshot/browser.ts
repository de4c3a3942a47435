import { type Browser, chromium } from 'playwright-core';
import { ensureChromium } from '../../../../scripts/ensure-chromium.mjs';

/** It draws in software, talks to nobody but the page, and runs as root, too. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

/** Without a window, with a profile of its own that ends with it. @throws what to type where there is no Chromium */
export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await ensureChromium(), args: FLAGS });
}
