import { type Clock, elapsedSince, type Instant } from '../redlock/clock.js';
import { hash, mix } from '../settings/keyspace.js';
import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';

// In milliseconds, since waiters were last reported for the key.
const CONTENDED_FOR = 1_000;

interface Candidate {
  readonly master: CircuitBreakerMaster;
  hash: number;
}

// All processes derive the same order of the masters from the key and the runs of the servers, whose addresses may differ
// (rendezvous hashing). They therefore contact the same master first and wait in the same queue, and votes are not split.
// The order differs from key to key, which spreads the load, also that of a master that is down.
export class HomeMasters {
  private readonly hasWaiters = new Map<string, Instant>();
  // Masters that have notified this process since it began to listen there.
  private readonly calling = new Set<CircuitBreakerMaster>();

  // Sorted by name, which decides between equal hashes.
  private readonly candidates: readonly Candidate[];

  constructor(
    masters: readonly CircuitBreakerMaster[],
    private readonly clock: Clock,
  ) {
    this.candidates = masters
      .map((master) => ({ master, hash: hash(master.name) }))
      .sort((a, b) => (a.master.name < b.master.name ? -1 : 1));
    for (const candidate of this.candidates) {
      const { master } = candidate;
      master.onReady(() => (candidate.hash = hash(master.identity().run ?? master.name)));
    }
  }

  // `undefined` if no master is usable.
  of(key: string): CircuitBreakerMaster | undefined {
    const [first, second] = this.candidates;
    // With one master, there is nothing to choose, and the hashes would cost a fiftieth of a lock.
    if (first && !second) return first.master.isUsable ? first.master : undefined;
    const hashOfKey = hash(key);
    let home: CircuitBreakerMaster | undefined;
    let highest = -1;
    for (const candidate of this.candidates) {
      // Protocol 5.3
      const weight = mix(hashOfKey ^ candidate.hash);
      if (weight <= highest || !candidate.master.isUsable) continue;
      home = candidate.master;
      highest = weight;
    }
    return home;
  }

  // After so many milliseconds behind another call of its process, a key may have ceased to count as contended although
  // processes wait for it. That call's release has woken one of them, which must not meet this call elsewhere.
  contentionMayHaveExpired(waited: number): boolean {
    return waited >= CONTENDED_FOR / 2;
  }

  notifies(master: CircuitBreakerMaster | undefined): boolean {
    return master !== undefined && this.calling.has(master);
  }

  noteNotification(master: CircuitBreakerMaster): void {
    this.calling.add(master);
  }

  noteLostNotifications(master: CircuitBreakerMaster): void {
    this.calling.delete(master);
  }

  areContended(keys: readonly string[]): boolean {
    if (this.hasWaiters.size === 0) return false;
    this.forget();
    return keys.some((key) => this.hasWaiters.has(key));
  }

  // A new acquisition joins the queue of these processes instead of overtaking them.
  noteContention(keys: readonly string[]): void {
    const now = this.clock.read();
    for (const key of keys) {
      // Delete first, so that the map stays ordered by time.
      this.hasWaiters.delete(key);
      this.hasWaiters.set(key, now);
    }
    this.forget();
  }

  private forget(): void {
    for (const [key, seen] of this.hasWaiters) {
      if (elapsedSince(this.clock, seen) < CONTENDED_FOR) break;
      this.hasWaiters.delete(key);
    }
  }
}
