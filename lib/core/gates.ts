import { type Clock, elapsedSince, type Instant } from './clock.js';
import { hash, mix } from './hash.js';
import type { WatchedMaster } from './watched-master.js';

/** How long a key counts as crowded after the last sign of it, in milliseconds. */
const CROWDED_FOR = 1_000;

/** A master, and the hash of its name. */
interface Candidate {
  readonly master: WatchedMaster;
  readonly hash: number;
}

/**
 * Which master is asked first when several processes want a resource, and for which resources that is the case.
 *
 * All processes derive the same order of the masters from the key and the masters' names (rendezvous hashing), in
 * whatever order they list them: they ask the same master first, wait in the same queue, and votes are not split. The
 * order differs from key to key, so the load is spread, and a master that is down leaves its keys to all others alike.
 */
export class Gates {
  private readonly crowded = new Map<string, Instant>();
  /** Masters that have woken this process since it listens there. */
  private readonly calling = new Set<WatchedMaster>();

  /** By name, which decides where two hashes are equal. */
  private readonly candidates: readonly Candidate[];

  constructor(
    masters: readonly WatchedMaster[],
    private readonly clock: Clock,
  ) {
    this.candidates = masters
      .map((master) => ({ master, hash: hash(master.name) }))
      .sort((a, b) => (a.master.name < b.master.name ? -1 : 1));
  }

  /** The first usable master in the order of the key; `undefined` if none is usable. */
  gateOf(key: string): WatchedMaster | undefined {
    const hashOfKey = hash(key);
    let gate: WatchedMaster | undefined;
    let highest = -1;
    for (const candidate of this.candidates) {
      const weight = mix(hashOfKey ^ candidate.hash);
      if (weight <= highest || !candidate.master.isUsable) continue;
      gate = candidate.master;
      highest = weight;
    }
    return gate;
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
