import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

/** Stands for what takes long and must not be done twice at the same time for one document. */
@Injectable()
export class Renderer {
  async render(_document: string): Promise<void> {
    await sleep(150);
  }
}
