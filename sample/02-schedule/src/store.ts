import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Represents the database that all instances share: a folder of logs. */
export class Store {
  constructor(
    private readonly folder: string,
    private readonly instance: string,
  ) {}

  /** Appends a line: these values, the last of which is the name of the instance. */
  async log(name: string, ...values: (string | number)[]): Promise<void> {
    await appendFile(join(this.folder, `${name}.log`), `${[...values, this.instance].join(' ')}\n`);
  }
}
