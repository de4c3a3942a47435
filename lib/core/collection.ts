import { type Clock, elapsedSince, type Instant } from './clock.js';
import type { Timer } from './clock.js';
import type { CallSettings } from './settings.js';
import type { Holding } from './holding.interface.js';
import { TenureSet } from './tenure-set.js';

/** What has been collected is extended after this share of the ttl. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is tried again after this share of the ttl. */
const RETRY_AFTER = 1 / 10;

/** Resources that are taken one after the other: keeps what there is alive until the rest is there. */
export class Collection {
  private readonly holding = new TenureSet();
  private since: Instant | undefined;
  private timer: Timer | undefined;
  private extending: Promise<unknown> | undefined;
  private ended = false;

  constructor(
    private readonly clock: Clock,
    private readonly call: CallSettings,
  ) {}

  add(part: Holding): void {
    this.holding.add(part);
    if (this.since) return;
    this.since = this.clock.read();
    this.keepAfter(this.call.ttl * EXTEND_AFTER);
  }

  /** Makes one lock of everything, whose validity counts from now on. `undefined` if a part has been lost meanwhile. */
  async complete(): Promise<Holding | undefined> {
    this.end();
    await this.extending;
    const { extended } = await this.holding.extend(this.call.ttl);
    return extended && this.holding.remaining > 0 ? this.holding : undefined;
  }

  /** Ends the round that is under way. */
  giveUp(): void {
    this.holding.giveUp();
  }

  release(): Promise<void> {
    this.end();
    return this.holding.release(0);
  }

  private end(): void {
    this.ended = true;
    this.timer?.cancel();
  }

  private keepAfter(delay: number): void {
    if (this.ended) return;
    this.timer = this.clock.schedule(delay, () => {
      this.extending = this.keep();
    });
    this.timer.unref();
  }

  private async keep(): Promise<void> {
    // Nobody keeps a lock for longer, and this is no lock yet: it expires, and what there is has to be taken anew.
    if (this.since && elapsedSince(this.clock, this.since) >= this.call.maxHold) return;
    const { ttl } = this.call;
    const { extended } = await this.holding.extend(ttl);
    if (extended || this.holding.remaining > 0) this.keepAfter(ttl * (extended ? EXTEND_AFTER : RETRY_AFTER));
  }
}
