// Resolution with which a server expires keys, in milliseconds. Added to every drift, and to a wait for an expiry:
// masters set their keys one after the other.
export const EXPIRY_RESOLUTION = 2;

export interface Timing {
  // Milliseconds.
  readonly masterTimeout: number;
  // Share of a ttl by which clocks may drift apart in that time.
  readonly driftFactor: number;
}

// How far the clocks of this client and of a server may drift apart during a ttl, in milliseconds.
export function driftOf({ driftFactor }: Timing, ttl: number): number {
  return ttl * driftFactor + EXPIRY_RESOLUTION;
}

// How long a holder can rely on a ttl that was granted, in whole milliseconds from before the first request. Never more than was
// computed: a fraction takes memory of its own.
// Protocol 3.2
export function validityOf(timing: Timing, ttl: number): number {
  return Math.floor(ttl - driftOf(timing, ttl)); // @mutant drift-ignored
}

// In milliseconds.
// Protocol 4.1
export function masterTimeoutFor({ masterTimeout }: Timing, ttl: number): number {
  return Math.min(masterTimeout, ttl / 4);
}
