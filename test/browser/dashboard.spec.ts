import { once } from 'node:events';
import { createServer, request as requestOf, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type CanActivate, type INestApplication, Injectable, type ModuleMetadata } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LockService, RedlockModule, type RedlockModuleOptions } from 'nestjs-redlock';
import { RedlockDashboardModule } from 'nestjs-redlock/dashboard';
import { LockedInterval, RedlockScheduleModule } from 'nestjs-redlock/schedule';
import { type Browser, chromium, type Page } from 'playwright-core';
import { ensureChromium } from '../../scripts/programs.mjs';
import { eventually } from '../support/eventually.js';
import { type Masters, startMasters } from '../support/masters.js';
import { ADAPTERS } from '../e2e/support/adapters.js';
import { closeAll, listen } from '../e2e/support/applications.js';

/** Limit for one test, in milliseconds: a busy machine draws slowly. */
jest.setTimeout(180_000);
const SEEN_WITHIN = 60_000;
const LONG = 'tenant:a-name-that-never-ends:'.repeat(6);
const SIZES = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 360, height: 740 },
};

/** Masters vote at once, and the end waits for no lock. */
const FAST = { restartGuard: false, drainTimeout: 0 } as const;

class OpenGuard implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

/** Its jobs begin within a second. */
@Injectable()
class Reports {
  @LockedInterval('1s', { name: 'sync' })
  async sync(): Promise<void> {
    await Promise.resolve();
  }

  @LockedInterval('1s', { name: LONG })
  async fail(): Promise<void> {
    throw new Error(`no such table: ${'customers_of_'.repeat(20)}`);
  }
}

const WITH_JOBS: ModuleMetadata = {
  imports: [ScheduleModule.forRoot(), RedlockScheduleModule],
  providers: [Reports],
};

let browser: Browser;
let masters: Masters;
let proxies: Server[] = [];
const complaints: string[] = [];

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: await ensureChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  masters = await startMasters(3);
}, 300_000);

afterEach(async () => {
  for (const proxy of proxies) proxy.close();
  proxies = [];
  await Promise.all(browser.contexts().map((context) => context.close()));
  await closeAll();
  expect(complaints.splice(0)).toEqual([]);
});

afterAll(async () => {
  await browser.close();
  await masters.stop();
});

async function start(
  adapter: (typeof ADAPTERS)[number]['adapter'],
  prepare: (app: INestApplication) => unknown = () => undefined,
  more: ModuleMetadata = {},
  options: Partial<RedlockModuleOptions> = {},
) {
  const imports = [
    ...(more.imports ?? []),
    RedlockModule.forRoot({ masters: [...masters.urls], maxTtl: '5m', masterTimeout: '2s', ...FAST, ...options }),
    RedlockDashboardModule.forRoot({ path: 'admin/locks', guards: [OpenGuard], actions: true, actor: () => 'anna' }),
  ];
  const { app, url } = await listen({ ...more, imports }, adapter(), prepare);
  return { app, url, locks: app.get(LockService) };
}

/** Like a reverse proxy that serves the application below `/tools/app` of another host name. */
async function behindProxy(url: string): Promise<string> {
  const proxy = createServer((incoming, response) => {
    const path = incoming.url!.replace(/^\/tools\/app/, '');
    const headers = { ...incoming.headers, host: 'upstream.internal' };
    const forwarded = requestOf(url + path, { method: incoming.method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    incoming.pipe(forwarded);
  });
  proxies.push(proxy);
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tools/app`;
}

async function open(url: string, size: keyof typeof SIZES, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const page = await browser.newPage({ viewport: SIZES[size], colorScheme });
  page.setDefaultTimeout(SEEN_WITHIN);
  const origin = new URL(url).host;
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => void complaints.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).host !== origin) complaints.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  await page.getByText('live', { exact: true }).waitFor();
  return page;
}

async function inspect(page: Page, resource: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Resource' }).fill(resource);
  await page.getByRole('button', { name: 'Look up', exact: true }).click();
  await page.locator('#inspection').getByRole('heading', { name: resource }).waitFor();
}

/** The elements that are wider than the screen, or that leave the card that they are in. */
async function misplaced(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? ['the page is wider than the screen'] : [];
    const cards = [...document.querySelectorAll('.panel, .master, dialog[open]')];
    return wide.concat(cards.flatMap((card) => {
      const outer = card.getBoundingClientRect();
      return [...card.querySelectorAll('*')].filter((each) => {
        const { left, right, width } = each.getBoundingClientRect();
        return width > 0 && (left < outer.left - 1 || right > outer.right + 1);
      }).map((each) => each.tagName + '.' + each.className + ' leaves its card: ' + each.textContent.slice(0, 40));
    }));
  })()`);
}

/** Texts whose contrast with what is behind them is less than WCAG AA requires. */
async function tooFaint(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const brush = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const paint = (colours) => {
      brush.clearRect(0, 0, 1, 1);
      for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
      return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
    const light = (channels) => {
      const [r, g, b] = channels.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const hasText = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
    return [...document.querySelectorAll('body *')].filter((each) => each.checkVisibility() && hasText(each)).flatMap((each) => {
      const behind = [];
      for (let at = each; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
      const lights = [light(paint(behind)), light(paint([...behind, getComputedStyle(each).color]))].sort((a, b) => b - a);
      const ratio = (lights[0] + 0.05) / (lights[1] + 0.05);
      return ratio < 4.5 ? [each.textContent.slice(0, 40) + ': ' + ratio.toFixed(2)] : [];
    });
  })()`);
}

/** Presses Tab until the focus has been everywhere. Returns what it has not reached. */
async function unreached(page: Page): Promise<string[]> {
  const focusable = 'button, input, select, a[href], [tabindex="0"]';
  await page.evaluate(`document.activeElement.blur()`);
  const count = await page.evaluate<number>(`document.querySelectorAll('${focusable}').length`);
  for (let press = 0; press < count + 2; press++) {
    await page.keyboard.press('Tab');
    await page.evaluate(`document.activeElement.dataset.reached = 'yes'`);
  }
  return page.evaluate<string[]>(
    `[...document.querySelectorAll('${focusable}')]
      .filter((each) => each.checkVisibility() && each.dataset.reached !== 'yes').map((each) => each.outerHTML)`,
  );
}

it.each(ADAPTERS)(
  'The page of the dashboard on $platform works below a global prefix and behind a proxy that adds another one, and releases a lock by force',
  async ({ platform, adapter }) => {
    // It stays taken on the masters, which both platforms use.
    const name = `order:${platform}`;
    const { url, locks } = await start(adapter, (app) => app.setGlobalPrefix('internal'));
    const lock = await locks.acquire(name, '5m');
    const page = await open(`${await behindProxy(url)}/internal/admin/locks`, 'desktop');
    await page.getByText('3 of 3 masters vote.', { exact: true }).waitFor();
    // An application without jobs has no section for them.
    await expect(page.getByRole('region', { name: 'Jobs' }).count()).resolves.toBe(0);
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('button', { name: 'Release by force…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox').fill('order:2');
    await dialog.getByRole('button', { name: 'Release', exact: true }).click();
    await dialog.getByText('This is not the name of the resource.').waitFor();
    await dialog.getByRole('textbox').fill(name);
    await page.keyboard.press('Enter');
    await page.locator('#inspection').getByText('released by force', { exact: true }).waitFor();
    await page.getByRole('log').getByText(`"anna" released "${name}"`).waitFor();
    await expect(lock.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await page.getByRole('log').getByText(`lost the lock on "${name}"`).waitFor();
  },
);

describe('The page of the dashboard', () => {
  // Its files and its data are the same on each platform, which test/e2e shows.
  const { adapter } = ADAPTERS[0];

  it.each(['desktop', 'phone'] as const)(
    'fits a %s in light and dark, can be read, and is reached by the keyboard everywhere',
    async (size) => {
      const { url, locks } = await start(adapter);
      await using _lock = await locks.acquire('order:1', '5m');
      await using _long = await locks.acquire(LONG, '5m');
      for (const scheme of ['light', 'dark'] as const) {
        const page = await open(`${url}/admin/locks`, size, scheme);
        await inspect(page, LONG);
        await page.getByRole('cell', { name: /\d s$/ }).first().waitFor();
        expect([scheme, await misplaced(page)]).toEqual([scheme, []]);
        expect([scheme, await tooFaint(page)]).toEqual([scheme, []]);
        expect(await unreached(page)).toEqual([]);
        await page.getByRole('button', { name: 'Release by force…' }).click();
        expect([scheme, await misplaced(page), await tooFaint(page)]).toEqual([scheme, [], []]);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        await page.close();
      }
    },
  );

  it('shows the permits of a name, and releases one by force', async () => {
    const { url, locks } = await start(adapter);
    const name = 'stripe';
    const [one, other] = [
      await locks.acquire(name, { permits: 2, ttl: '5m' }),
      await locks.acquire(name, { permits: 2, ttl: '5m' }),
    ];
    const waiting = locks.acquire(name, { permits: 2, wait: '5m' });
    const page = await open(`${url}/admin/locks`, 'phone');
    await page.getByText('one of 2 permits', { exact: true }).waitFor();
    await page.getByRole('button', { name, exact: true }).click();
    const inspection = page.locator('#inspection');
    await inspection.getByText('permits taken', { exact: true }).waitFor();
    await expect(inspection.getByText('free', { exact: true }).count()).resolves.toBe(3);
    expect([await misplaced(page), await tooFaint(page)]).toEqual([[], []]);
    const title = `${name} #${one.slot}`;
    await inspection.getByRole('button', { name: `#${one.slot}`, exact: true }).click();
    await inspection.getByRole('heading', { name: title }).waitFor();
    await expect(page.getByRole('textbox', { name: 'Resource' }).inputValue()).resolves.toBe(title);
    await page.getByRole('button', { name: 'Release by force…' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill(title);
    await page.keyboard.press('Enter');
    await inspection.getByText('released by force', { exact: true }).waitFor();
    await expect(one.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await page.getByRole('button', { name: `${name} #${other.slot}`, exact: true }).click();
    await inspection.getByRole('heading', { name: `${name} #${other.slot}` }).waitFor();
    await other.release();
    await (await waiting).release();
  });

  it.each(['desktop', 'phone'] as const)('shows jobs that have finished and failed, and fits a %s', async (size) => {
    const { url, locks } = await start(adapter, undefined, WITH_JOBS);
    const { instance } = locks.status();
    const page = await open(`${url}/admin/locks`, size, 'dark');
    const jobs = page.getByRole('region', { name: 'Jobs' });
    const [sync, broken] = ['sync', LONG].map((name) => jobs.getByRole('article', { name: `Job ${name}` }));
    await sync!.getByText(/^1s · next .* in \d/).waitFor();
    const finished = sync!
      .getByRole('listitem')
      .filter({ hasText: `on ${instance}` })
      .filter({ hasText: 'ok' });
    await finished
      .filter({ hasText: /took \d\.\d s/ })
      .first()
      .waitFor();
    const failed = broken!.getByRole('listitem').filter({ hasText: 'failed' });
    await failed.filter({ hasText: 'no such table: customers_of_' }).first().waitFor();
    expect([await misplaced(page), await tooFaint(page)]).toEqual([[], []]);
    await expect(jobs.getByRole('button').count()).resolves.toBe(0);
  });

  it('greys out what it last knew while the application does not answer, and says from when it is', async () => {
    const { url } = await start(adapter);
    const page = await open(`${url}/admin/locks`, 'desktop');
    const look = (): Promise<string> =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('main')).filter`);
    await page.getByRole('status').getByText('Locks can be taken').waitFor();
    expect(await look()).toBe('none');
    await page.route('**/api/state*', (route) => route.fulfill({ status: 503, json: { message: 'over' } }));
    await page.getByText(/status 503: over\. What follows is from \d/).waitFor();
    expect(await look()).toBe('grayscale(1)');
    await page.unroute('**/api/state*');
    await page.getByText('live', { exact: true }).waitFor();
    expect(await look()).toBe('none');
    // Chromium complains of the status, which is meant here.
    expect(complaints.splice(0)).toEqual(expect.arrayContaining([expect.stringContaining('503')]));
  });

  it('shows how long a restarted master waits before it votes, and that a paused one does not answer', async () => {
    const guarded = { restartGuard: true, ttl: '8s', maxTtl: '8s' } as const;
    const { url } = await start(adapter, undefined, {}, guarded);
    const page = await open(`${url}/admin/locks`, 'desktop');
    await page.getByText('3 of 3 masters vote.', { exact: true }).waitFor();
    const [, second, third] = masters.servers;
    const card = (server: { port: number }) =>
      page.getByRole('article', { name: `Master 127.0.0.1:${server.port}` }).locator('.badge');
    await third!.restart();
    await card(third!)
      .getByText(/ for \d\.\d s$/)
      .waitFor();
    await page.getByText(/^2 of 3 masters vote/).waitFor();
    expect([await misplaced(page), await tooFaint(page)]).toEqual([[], []]);
    await page.getByText('3 of 3 masters vote.', { exact: true }).waitFor();

    second!.pause();
    try {
      await card(second!)
        .getByText(/^(silent|down)$/)
        .waitFor();
      await page.getByRole('status').getByText('Locks can be taken').waitFor();
    } finally {
      second!.resume();
    }
    await page.getByText('3 of 3 masters vote.', { exact: true }).waitFor();
  });

  it('shows a master that is down and a lost quorum at once, also on a phone', async () => {
    const { url, locks } = await start(adapter);
    const page = await open(`${url}/admin/locks`, 'phone', 'dark');
    const [, second, third] = masters.servers;
    await Promise.all([second!.kill(), third!.kill()]);
    try {
      await page.getByRole('status').getByText('No lock can be taken').waitFor();
      const card = page.getByRole('article', { name: `Master 127.0.0.1:${second!.port}` });
      await card.getByText('down', { exact: true }).waitFor();
      await page.getByRole('log').getByText('no lock can be taken: 1 of 3 masters vote').waitFor();
      expect([await misplaced(page), await tooFaint(page)]).toEqual([[], []]);
    } finally {
      await Promise.all([second!.restart(), third!.restart()]);
    }
    await page.getByRole('status').getByText('Locks can be taken').waitFor();
    await eventually(() => locks.status().canVote);
  });
});
