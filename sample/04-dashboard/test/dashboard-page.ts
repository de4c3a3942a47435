import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Locator, Page } from 'playwright-core';

/** How long a change may take to become visible, in milliseconds. */
const SEEN_WITHIN = 30_000;

/** The open dashboard as a user sees it, with the buttons to press. */
export class DashboardPage {
  private constructor(readonly page: Page) {}

  static async open(browser: Browser, url: string): Promise<DashboardPage> {
    const page = await browser.newPage();
    page.setDefaultTimeout(SEEN_WITHIN);
    await page.goto(url);
    return new DashboardPage(page);
  }

  async press(name: string): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).click();
  }

  /** @param number from 1 */
  master(number: number): Locator {
    return this.page.getByRole('article', { name: `Master ${number}` });
  }

  /** Its row of the table. */
  lock(resource: string): Locator {
    return this.page.getByRole('row', { name: new RegExp(`^${resource} `) });
  }

  async holderOf(resource: string): Promise<string> {
    return this.lock(resource).locator('td').first().innerText();
  }

  async waitingFor(resource: string): Promise<string[]> {
    const text = await this.lock(resource).locator('td').last().innerText();
    return text.match(/[A-Z]/g)?.sort() ?? [];
  }

  /** Milliseconds for which its holder may rely on it. */
  async remaining(resource: string): Promise<number> {
    return (
      1000 *
      Number.parseFloat(
        await this.lock(resource)
          .getByText(/^\d+\.\d s$/)
          .innerText(),
      )
    );
  }

  inLog(text: string | RegExp): Locator {
    return this.page.getByRole('log').getByRole('listitem').filter({ hasText: text });
  }

  alert(text: string | RegExp): Locator {
    return this.page.getByRole('alert').filter({ hasText: text });
  }

  /** A figure in the head of the page. */
  async figure(name: 'hand-offs' | 'losses'): Promise<number> {
    return Number(await this.page.locator(`#${name}`).innerText());
  }

  async untilStatus(text: string): Promise<void> {
    await seen(this.page.getByRole('status').filter({ hasText: text }));
  }

  /** Resolves when the remaining time of the lock has gone up so often. */
  async untilExtended(resource: string, times: number): Promise<void> {
    let [last, rises] = [Infinity, 0];
    const count = async (): Promise<number> => {
      const left = await this.remaining(resource);
      if (left > last) rises++;
      last = left;
      return rises;
    };
    await until(count, () => rises >= times);
  }

  /** Resolves when locks have changed hands a few more times. */
  async untilHandedOn(): Promise<void> {
    const before = await this.figure('hand-offs');
    await until(
      () => this.figure('hand-offs'),
      (count) => count >= before + 3,
    );
  }
}

export async function seen(locator: Locator): Promise<void> {
  await locator.first().waitFor();
}

/** Asks until an answer is acceptable, and resolves with it. */
export async function until<T>(ask: () => Promise<T>, isWanted: (value: T) => boolean): Promise<T> {
  const end = performance.now() + SEEN_WITHIN;
  for (;;) {
    const value = await ask();
    if (isWanted(value)) return value;
    if (performance.now() > end) throw new Error(`still ${String(value)} after ${SEEN_WITHIN} ms`);
    await sleep(50);
  }
}
