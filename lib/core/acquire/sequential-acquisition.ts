import { type Clock, elapsedSince, type Instant } from '../clock.js';
import type { Timer } from '../clock.js';
import type { CallSettings } from '../settings/settings.js';
import type { Witness } from '../witness.interface.js';
import type { LeasedKeys } from './leased-keys.interface.js';
import { CompositeLock } from './composite-lock.js';

/** Resources that have been collected are extended after this share of the ttl. */
const EXTEND_AFTER = 1 / 3;
/** A failed extension is retried after this share of the ttl. */
const RETRY_AFTER = 1 / 10;

/** Resources that are acquired one by one: keeps those already acquired alive until the rest are acquired, too. */
export class SequentialAcquisition {
  // Protocol 4.9
  private readonly leasedKeys = new CompositeLock();
  private since: Instant | undefined;
  private timer: Timer | undefined;
  private extending: Promise<unknown> | undefined;
  private ended = false;
  private isGivenUp = false;

  constructor(
    private readonly clock: Clock,
    private readonly witness: Witness,
    private readonly call: CallSettings,
  ) {}

  add(part: LeasedKeys): void {
    this.leasedKeys.add(part);
    if (this.since) return;
    this.since = this.clock.read();
    this.keepAfter(this.call.ttl * EXTEND_AFTER);
  }

  /**
   * Makes one lock of all parts, whose validity of `ttl` milliseconds counts from now. `undefined` if a part is lost or not
   * extended.
   */
  async complete(ttl: number): Promise<LeasedKeys | undefined> {
    this.end();
    await this.extending;
    if (this.isGivenUp) return undefined;
    const { extended } = await this.leasedKeys.extend(ttl);
    return extended && this.leasedKeys.remaining > 0 ? this.leasedKeys : undefined;
  }

  /** Ends the current round, and begins no other. */
  giveUp(): void {
    this.isGivenUp = true;
    this.leasedKeys.giveUp();
  }

  release(): Promise<void> {
    this.end();
    return this.leasedKeys.release(0);
  }

  private end(): void {
    this.ended = true;
    this.timer?.cancel();
  }

  private keepAfter(delay: number): void {
    if (this.ended) return;
    this.timer = this.clock.schedule(delay, () => void this.keep()).unref();
  }

  private async keep(): Promise<void> {
    // A lock may not be kept for longer, and this is not even a lock yet: let it expire, so that all is acquired anew.
    if (this.since && elapsedSince(this.clock, this.since) >= this.call.maxHold) return;
    const permitted = await this.witness.announceTtl(this.call.ttl);
    // Released or completed meanwhile: nothing may be extended after that.
    if (this.ended) return;
    const ttl = Math.min(this.call.ttl, permitted);
    const extending = this.leasedKeys.extend(ttl);
    this.extending = extending;
    const { extended } = await extending;
    if (extended || this.leasedKeys.remaining > 0) this.keepAfter(ttl * (extended ? EXTEND_AFTER : RETRY_AFTER));
  }
}
