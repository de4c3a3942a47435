import { type Clock, elapsedSince, type Instant } from './clock.js';
import { hash, mix } from './hash.js';
import type { WatchedMaster } from './watched-master.js';

/** How long a key counts as contended after waiters were last reported for it, in milliseconds. */
const CROWDED_FOR = 1_000;

/** A master and the hash of its name. */
interface Candidate {
  readonly master: WatchedMaster;
  readonly hash: number;
}

/**
 * Selects the home master of each key, which is contacted first when several processes contend for the key, and tracks
 * which keys are contended.
 *
 * All processes derive the same order of the masters from the key and the masters' names (rendezvous hashing), in
 * whatever order they list them. They therefore contact the same master first and wait in the same queue, and votes are
 * not split. The order differs from key to key, which spreads the load. The keys of a master that is down are spread
 * evenly over all others.
 */
export class Gates {
  private readonly crowded = new Map<string, Instant>();
  /** Masters that have woken this process since it began to listen there. */
  private readonly calling = new Set<WatchedMaster>();

  /** Sorted by name, which decides between equal hashes. */
  private readonly candidates: readonly Candidate[];

  constructor(
    masters: readonly WatchedMaster[],
    private readonly clock: Clock,
  ) {
    this.candidates = masters
      .map((master) => ({ master, hash: hash(master.name) }))
      .sort((a, b) => (a.master.name < b.master.name ? -1 : 1));
  }

  /** The home master of a key: the first usable one in the key's order. `undefined` if no master is usable. */
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

  /** Whether a master is known to wake this process: it has done so over the current connection for wake-ups. */
  calls(master: WatchedMaster | undefined): boolean {
    return master !== undefined && this.calling.has(master);
  }

  /** A master has woken this process. */
  noteCall(master: WatchedMaster): void {
    this.calling.add(master);
  }

  /** Wake-ups of a master may have been lost. */
  noteSilence(master: WatchedMaster): void {
    this.calling.delete(master);
  }

  /** Whether other processes were reported a moment ago as waiting for one of these keys. */
  areCrowded(keys: readonly string[]): boolean {
    if (this.crowded.size === 0) return false;
    this.forget();
    return keys.some((key) => this.crowded.has(key));
  }

  /** Other processes wait for these keys: a new acquisition joins their queue instead of overtaking them. */
  noteCrowd(keys: readonly string[]): void {
    const now = this.clock.read();
    for (const key of keys) {
      // Delete first, so that the map stays ordered by time.
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
