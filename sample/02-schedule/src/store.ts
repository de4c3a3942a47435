import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Represents the database that all instances share: a folder of logs. */
export class Store {
  constructor(
    private readonly folder: string,
    private readonly instance: string,
  ) {}

  /** Appends a line: these values, and the name of the instance. */
  log(name: string, ...values: (string | number)[]): Promise<void> {
    return appendFile(join(this.folder, `${name}.log`), `${[...values, this.instance].join(' ')}\n`);
  }
}
