// Takes docs/dashboard.png, the picture of the README, which shows real masters in trouble.
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Logger } from '@nestjs/common';
import type { Page } from 'playwright-core';
import { readConfig } from '../config.js';
import { start } from '../start.js';
import { openBrowser } from './browser.js';

const PICTURE = fileURLToPath(new URL('../../../../docs/dashboard.png', import.meta.url));
const SIZE = { width: 1280, height: 800 };
/** Time before and after the failures, which fills the last minute of the picture, in milliseconds. */
const BEFORE = 30_000;
const AFTER = 8_000;
/** Elapsed quarantine of a master in the picture, in milliseconds. */
const INTO_QUARANTINE = 1_000;

Logger.overrideLogger(['error', 'fatal']);
const app = await start({ ...readConfig(process.env), port: 0 });
try {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light' });
    await page.goto(await app.getUrl());
    await play(page);
    await page.screenshot({ path: PICTURE });
  } finally {
    await browser.close();
  }
} finally {
  await app.close();
}

/** Pauses two of three masters until a lock is lost, and then restarts one of them. */
async function play(page: Page): Promise<void> {
  const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
  await page.getByText('Quorum: 3 of 3 masters vote').waitFor();
  await sleep(BEFORE);
  // The lock has just been taken, so it is still held when there is no quorum to extend it.
  const taken = page.getByRole('log').getByText(/ nightly-report /);
  await taken.nth(await taken.count()).waitFor();
  await press('Pause master 2');
  await press('Pause master 3');
  await page
    .getByRole('log')
    .getByText(/ lost nightly-report /)
    .waitFor();
  await press('Resume master 2');
  await press('Resume master 3');
  await page.getByText('Quorum: 3 of 3 masters vote').waitFor();
  await sleep(AFTER);
  await press('Restart master 3');
  await page
    .getByRole('article', { name: 'Master 3' })
    .getByText(/^quarantined for/)
    .waitFor();
  await sleep(INTO_QUARANTINE);
  // Leaves no button focused or under the pointer.
  await page.mouse.move(0, 0);
  await page.getByRole('heading', { level: 1 }).click();
}
