import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The state of a batch in an instance. */
export type BatchEvent = 'begun' | 'done' | 'stopped';

export interface Entry {
  /** Time of the event, in milliseconds since the Unix epoch. */
  at: number;
  /** Process id of the instance. */
  instance: number;
  event: BatchEvent;
  batch: number;
}

/** Represents a table of a database that the instances share: a file to which every instance appends lines. */
export class Ledger {
  private readonly file: string;

  constructor(folder: string) {
    this.file = join(folder, 'batches.log');
  }

  add(event: BatchEvent, batch: number): void {
    appendFileSync(this.file, `${Date.now()} ${process.pid} ${event} ${batch}\n`);
  }

  /** The first batch that no instance has completed. */
  next(): number {
    return 1 + Math.max(0, ...this.entries().flatMap(({ event, batch }) => (event === 'done' ? [batch] : [])));
  }

  entries(): Entry[] {
    if (!existsSync(this.file)) return [];
    const lines = readFileSync(this.file, 'utf8').trim().split('\n');
    return lines.map((line) => {
      const [at, instance, event, batch] = line.split(' ');
      return { at: Number(at), instance: Number(instance), event: event as BatchEvent, batch: Number(batch) };
    });
  }
}
