import { type Clock, elapsedSince, type Instant } from './clock.js';
import { hash } from './hash.js';
import type { WatchedMaster } from './watched-master.js';

/** How long a key counts as crowded after the last sign of it, in milliseconds. */
const CROWDED_FOR = 1_000;

/**
 * Which master is asked first when several processes want a resource, and for which resources that is the case.
 *
 * Everybody works out the same order of the masters from the name of the key, so that everybody asks the same one
 * first and votes are not split. The order differs from key to key, so that the load does not.
 */
export class Gates {
  private readonly crowded = new Map<string, Instant>();
  /** Masters that have woken this process since it listens there. */
  private readonly calling = new Set<WatchedMaster>();

  constructor(
    private readonly masters: readonly WatchedMaster[],
    private readonly clock: Clock,
  ) {}

  /** The first usable master in the order of the key; `undefined` if none is usable. */
  gateOf(key: string): WatchedMaster | undefined {
    const { length } = this.masters;
    const start = hash(key) % length;
    for (let i = 0; i < length; i++) {
      const master = this.masters[(start + i) % length];
      if (master?.isUsable) return master;
    }
    return undefined;
  }

  /** Whether a master is known to wake this process: it has done so since the connection for that is there. */
  calls(master: WatchedMaster | undefined): boolean {
    return master !== undefined && this.calling.has(master);
  }

  /** A master has woken this process. */
  noteCall(master: WatchedMaster): void {
    this.calling.add(master);
  }

  /** A master may not have woken this process when it should have. */
  noteSilence(master: WatchedMaster): void {
    this.calling.delete(master);
  }

  /** Whether other processes were seen waiting for one of these keys a moment ago. */
  areCrowded(keys: readonly string[]): boolean {
    if (this.crowded.size === 0) return false;
    this.forget();
    return keys.some((key) => this.crowded.has(key));
  }

  /** Other processes wait for these keys: whoever comes now joins their queue instead of overtaking them. */
  noteCrowd(keys: readonly string[]): void {
    const now = this.clock.read();
    for (const key of keys) {
      // Deleted first, so that the map is ordered by time.
      this.crowded.delete(key);
      this.crowded.set(key, now);
    }
    this.forget();
  }

  private forget(): void {
    for (const [key, seen] of this.crowded) {
      if (elapsedSince(this.clock, seen) < CROWDED_FOR) break;
      this.crowded.delete(key);
    }
  }
}
