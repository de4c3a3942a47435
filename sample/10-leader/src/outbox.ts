import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Sent {
  /** In milliseconds since the Unix epoch. */
  at: number;
  /** Process id of the instance. */
  pid: number;
  term: number;
  message: number;
}

/** Represents a table of a database that the instances share: a file to which the leader appends lines. */
export class Outbox {
  private readonly file: string;

  constructor(folder: string) {
    this.file = join(folder, 'sent.log');
  }

  /** The first message that is not sent. Messages are numbers, and there is always a next one. */
  next(): number {
    return (this.sent().at(-1)?.message ?? 0) + 1;
  }

  /**
   * Does nothing if a later leader has sent something. A database does that in one statement:
   * `UPDATE outbox SET sent = $1, term = $2 WHERE term <= $2`.
   */
  send(message: number, term: number): boolean {
    if (this.sent().some((line) => line.term > term)) return false;
    appendFileSync(this.file, `${Date.now()} ${process.pid} ${term} ${message}\n`);
    return true;
  }

  sent(): Sent[] {
    if (!existsSync(this.file)) return [];
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => {
      const [at = 0, pid = 0, term = 0, message = 0] = line.split(' ').map(Number);
      return { at, pid, term, message };
    });
  }
}
