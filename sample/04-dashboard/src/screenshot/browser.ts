import { type Browser, chromium } from 'playwright-core';
import { ensureChromium } from '../../../../scripts/ensure-chromium.mjs';

/** Render in software, connect to nothing but the page, and allow running as root. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

/** Opens a browser without a window, with a temporary profile. @throws what to type if there is no Chromium */
export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await ensureChromium(), args: FLAGS });
}
