import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Represents the database that all instances share: a folder. A number can be read and written, but the two steps are
 * not atomic. The lock protects them.
 */
export class Store {
  constructor(
    private readonly folder: string,
    private readonly instance: string,
  ) {}

  /** Resolves with `undefined` if the number was never written. */
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
    // Readers see either the old number or the new one, never a part of it.
    await rename(draft, this.pathOf(name));
  }

  /** Appends a line to a log. */
  async log(name: string, line: string): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    await appendFile(this.pathOf(`${name}.log`), `${line}\n`);
  }

  private pathOf(name: string): string {
    return join(this.folder, encodeURIComponent(name));
  }
}
