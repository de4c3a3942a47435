import { ServiceUnavailableException } from '@nestjs/common';

/** A page that has not asked for this many milliseconds is closed, or hidden. */
const GONE_AFTER = 5_000;
const LONGEST_ID = 64;

/** The pages that are open. Each asks once a second. */
export class Viewers {
  /** When each page asked last, the one that asked longest ago first. */
  private readonly seen = new Map<string, number>();

  constructor(private readonly most: number) {}

  /** @throws {ServiceUnavailableException} if too many other pages are open */
  admit(viewer: string, now = performance.now()): void {
    const id = viewer.slice(0, LONGEST_ID);
    for (const [other, at] of this.seen) {
      if (now - at < GONE_AFTER) break;
      this.seen.delete(other);
    }
    if (!this.seen.delete(id) && this.seen.size >= this.most) {
      throw new ServiceUnavailableException(
        `${this.most} pages are open already, which is what the option viewers allows`,
      );
    }
    this.seen.set(id, now);
  }
}
