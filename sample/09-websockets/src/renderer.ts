import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Represents slow work that must not run twice at the same time for one document. */
@Injectable()
export class Renderer {
  async render(_document: string): Promise<void> {
    await sleep(150);
  }
}
