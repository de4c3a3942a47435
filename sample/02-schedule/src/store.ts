import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Stands for the database that all instances share: a folder. A number can be read and it can be written, but nothing
 * holds the two together: that is what the lock is for.
 */
export class Store {
  constructor(
    private readonly folder: string,
    private readonly instance: string,
  ) {}

  /** Undefined if it was never written. */
  async read(name: string): Promise<number | undefined> {
    try {
      return Number(await readFile(this.pathOf(name), 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async write(name: string, value: number): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const draft = this.pathOf(`${name}.${this.instance}.${crypto.randomUUID()}`);
    await writeFile(draft, String(value));
    // Readers see the old number or the new one, never half of it.
    await rename(draft, this.pathOf(name));
  }

  /** Adds a line to a log. */
  async log(name: string, line: string): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    await appendFile(this.pathOf(`${name}.log`), `${line}\n`);
  }

  private pathOf(name: string): string {
    return join(this.folder, encodeURIComponent(name));
  }
}
