import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export type Prices = Readonly<Record<string, number>>;

/** Represents a cache of prices that the instances share: a folder with a file for each item. */
export class PriceStore {
  constructor(private readonly folder: string) {}

  /** @throws if there is no price */
  async read(item: string): Promise<number> {
    return Number(await readFile(join(this.folder, item), 'utf8'));
  }

  /** Replaces all prices in several steps. In between, some are missing. */
  async replace(prices: Prices): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    for (const item of await readdir(this.folder)) await rm(join(this.folder, item));
    await this.betweenSteps();
    for (const [item, price] of Object.entries(prices)) await writeFile(join(this.folder, item), String(price));
  }

  /** The tests stop here, to look at the prices meanwhile. */
  protected async betweenSteps(): Promise<void> {}
}
