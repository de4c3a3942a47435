import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

const CHUNKS = 20;

/** Represents a source that must not be read twice at the same time. */
@Injectable()
export class ExportsService {
  /** Streams the rows of an export. */
  rows(id: string): Readable {
    return Readable.from(rowsOf(id));
  }

  async refresh(_id: string): Promise<void> {
    await sleep(200);
  }
}

async function* rowsOf(id: string): AsyncGenerator<string> {
  for (let i = 1; i <= CHUNKS; i++) {
    yield `${id},${i}\n`;
    await sleep(100);
  }
}
