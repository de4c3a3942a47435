import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type INestApplication, Logger } from '@nestjs/common';
import type { Browser } from 'playwright-core';
import { LocalMasters } from '../src/masters/local-masters.js';
import { openBrowser } from '../src/screenshot/browser.js';
import { start } from '../src/start.js';
import { CONFIG } from './config.js';
import { DashboardPage, seen, until } from './dashboard-page.js';

/** Limit for one test, in milliseconds. Each wait within it has a limit of its own. */
jest.setTimeout(180_000);

let app: INestApplication;
let browser: Browser;
let page: DashboardPage;
const cleanUps: (() => Promise<void>)[] = [];

// A browser may have to be installed first.
beforeAll(async () => {
  Logger.overrideLogger(false);
  browser = await openBrowser();
  cleanUps.push(() => browser.close());
  app = await start(CONFIG);
  cleanUps.push(() => app.close());
  page = await DashboardPage.open(browser, await app.getUrl());
  await page.untilStatus('Quorum: 3 of 3 masters vote');
  await until(() => page.holderOf('endless'), isInstance);
}, 300_000);

afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const isInstance = (text: string): boolean => CONFIG.instances.includes(text);

/** State of a master's process according to the system; `T` means stopped. */
function processStateOf(number: number): string {
  const pid = String(app.get(LocalMasters).find(number).pid);
  return execFileSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' }).trim();
}

// The tests continue each other, on one page.
describe('The dashboard', () => {
  it('shows the holder of a lock, the masters that have it, and the waiters', async () => {
    const holder = await page.holderOf('endless');
    for (const number of [1, 2, 3]) await seen(page.lock('endless').getByLabel(`master ${number}: has the key`));
    const others = CONFIG.instances.filter((name) => name !== holder);
    const waiting = await until(
      () => page.waitingFor('endless'),
      (names) => names.length === others.length,
    );
    expect(waiting).toEqual(others);
  });

  it('counts the remaining time down, and up again when the lock is extended', async () => {
    const holder = await page.holderOf('endless');
    const shown: number[] = [];
    const watch = async (): Promise<number[]> => {
      shown.push(await page.remaining('endless'));
      return shown;
    };
    // Neighbouring figures, since the highest and the lowest of one cycle may never come again.
    const fell = (figures: number[]): boolean => figures.some((left, i) => left < (figures[i - 1] ?? 0));
    const rose = (figures: number[]): boolean => figures.some((left, i) => left > (figures[i - 1] ?? left));
    await until(watch, (figures) => fell(figures) && rose(figures));
    expect(Math.max(...shown)).toBeLessThanOrEqual(3_000);
    expect(await page.holderOf('endless')).toBe(holder);
  });

  it('shows a killed master as down, while locks continue to change hands', async () => {
    await page.press('Kill master 1');
    await seen(page.master(1).getByText('down', { exact: true }));
    await seen(page.master(1).getByText('not running'));
    expect(app.get(LocalMasters).find(1).pid).toBeUndefined();
    await page.untilStatus('Quorum: 2 of 3 masters vote');
    await page.untilHandedOn();
    expect(await page.figure('losses')).toBe(0);
    await seen(page.inLog('You: kill master 1'));
    await seen(page.inLog('Master 1 is down'));
  });

  it('shows a restarted master as quarantined with the remaining time, and then as voting', async () => {
    const badge = page.master(1).getByText(/^quarantined for \d\.\d s$/);
    const shown: number[] = [];
    const watch = async (): Promise<number[]> => {
      shown.push(...(await badge.allInnerTexts()).map((text) => Number(text.replace(/[^\d.]/g, ''))));
      return shown;
    };
    await page.press('Restart master 1');
    const fellTo = (seconds: number[]): number[] => seconds.filter((left, i) => left < (seconds[i - 1] ?? 0));
    await until(watch, (seconds) => fellTo(seconds).some((left) => left > 1));
    // `maxTtl`.
    expect(Math.max(...shown)).toBeLessThanOrEqual(5);
    await seen(page.master(1).getByText('voting', { exact: true }));
    await seen(page.inLog(/Master 1 is quarantined for \d\.\d s/));
    await seen(page.inLog('Master 1 votes'));
  });

  it('shows that a paused master does not answer, without any loss', async () => {
    // Master 1, which has restarted, counts for a lock that was held meanwhile once an extension has set its key again, and
    // another one has been granted.
    for (const number of [1, 2, 3]) await seen(page.lock('endless').getByLabel(`master ${number}: has the key`));
    await page.untilExtended('endless', 3);
    await page.press('Pause master 2');
    // Its connections are replaced once nothing has arrived over them for a while.
    await seen(page.master(2).getByText(/^(silent|down)$/));
    expect(processStateOf(2)).toMatch(/^T/);
    await page.untilHandedOn();
    expect(await page.figure('losses')).toBe(0);
  });

  it('shows a loss when a second master is paused, and the holder of the lock when both resume', async () => {
    await page.press('Pause master 3');
    await page.untilStatus('No quorum: 1 of 3 masters vote');
    await seen(page.lock('endless').getByLabel(/^master 3: does not say, it is (silent|down)$/));
    await seen(page.inLog(/[ABC] lost endless after .*: its validity ended before a quorum extended it/));
    await seen(page.alert(/Latest loss, .*[ABC] lost /));
    await seen(page.page.locator('#timeline .loss'));
    expect(await page.figure('losses')).toBeGreaterThan(0);

    await page.press('Resume master 2');
    await page.press('Resume master 3');
    await page.untilStatus('Quorum: 3 of 3 masters vote');
    expect(processStateOf(2)).not.toMatch(/^T/);
    await page.untilHandedOn();
    expect(await until(() => page.holderOf('endless'), isInstance)).toMatch(/^[ABC]$/);
  });

  it('shows that a paused holder has lost its lock to another instance', async () => {
    const holder = await page.holderOf('endless');
    await page.press(`Pause instance ${holder}`);
    const next = await until(
      () => page.holderOf('endless'),
      (text) => isInstance(text) && text !== holder,
    );
    await seen(page.inLog(`${holder} → ${next} endless`));
    const losses = page.inLog(`${holder} lost endless`);
    const before = await losses.count();
    await page.press(`Resume instance ${holder}`);
    await losses.nth(before).waitFor();
    // Its late report must not change the displayed holder.
    await page.untilHandedOn();
    expect(await page.holderOf('endless')).toBe(next);
  });

  it('shows past events on a page that opens later', async () => {
    const late = await DashboardPage.open(browser, await app.getUrl());
    await seen(late.alert(/Latest loss, .*[ABC] lost /));
    await seen(late.inLog('lost endless'));
    await seen(late.inLog('You: kill master 1'));
    expect(await late.figure('losses')).toBe(await page.figure('losses'));
    await late.page.close();
  });

  it('can be read without hand-offs', async () => {
    const handOff = page.inLog('→').first();
    await seen(handOff);
    await page.page.getByLabel('with hand-offs').uncheck();
    await handOff.waitFor({ state: 'hidden' });
    expect(await page.inLog('lost endless').first().isVisible()).toBe(true);
  });
});
