// Takes docs/dashboard.png: sample/04-dashboard on three masters, one of which has just been restarted. Build both before.
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nestjs-redlock';
import { ensureChromium } from '../../scripts/programs.mjs';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { AppModule } from '../../sample/04-dashboard/dist/app.module.js';

const PICTURE = new URL('../../docs/dashboard.png', import.meta.url).pathname;
const PASSWORD = 'screenshot';

const masters = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
// New masters vote before the next run of the job, which is due at each multiple of 15 s.
await sleep(15_000 - (Date.now() % 15_000));
const locks = { masters: masters.map(({ url }) => url), ttl: '8s', drainTimeout: 0 };
const [app, other] = await Promise.all(
  ['shop-1', 'shop-2'].map((instance) =>
    NestFactory.create(AppModule.register({ ...locks, instance }, PASSWORD), { logger: false }),
  ),
);
const browser = await chromium.launch({
  executablePath: await ensureChromium(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
try {
  const [url, next] = await Promise.all(
    [app, other].map((each) => each.listen(0, '127.0.0.1').then(() => each.getUrl())),
  );
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' });
  page.setDefaultTimeout(60_000);
  await page.goto(`${url}/login`);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByText('3 of 3 masters vote.', { exact: true }).waitFor();
  await page.getByRole('article', { name: 'Job report' }).getByText('ok').first().waitFor();

  const ship = (address) => void fetch(`${address}/orders/7/shipment`, { method: 'POST' }).catch(() => {});
  ship(url);
  const held = page.getByRole('button', { name: 'order:7', exact: true });
  await held.waitFor();
  ship(next);
  while ((await other.get(LockService).inspect('order:7')).waiting === 0) await sleep(50);
  await held.click();
  await page.locator('#inspection').getByRole('heading', { name: 'order:7' }).waitFor();
  await masters[2].restart();
  await page.locator('.master[data-state="quarantined"]').waitFor();
  await page.evaluate('document.activeElement.blur()');
  // Leaves no button under the pointer.
  await page.mouse.move(0, 0);
  await page.screenshot({ path: PICTURE, fullPage: true });
} finally {
  await browser.close();
  await Promise.all([app, other].map((each) => each.close()));
  await Promise.all(masters.map((master) => master.stop()));
}
