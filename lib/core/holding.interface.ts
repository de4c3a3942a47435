import type { Instant } from './clock.js';
import type { Ballot } from './quorum.js';

/** How an extension ended. */
export interface Extension {
  readonly extended: boolean;
  readonly ballot: Ballot;
}

/** What a lock has on the masters. */
export interface Holding {
  /** Milliseconds for which it may still be relied on; zero or less when it may not. */
  readonly remaining: number;
  /** Like {@link remaining}, where the clock has just been read. */
  remainingAt(now: Instant): number;
  /** When the round began that the validity counts from. */
  readonly validSince: Instant;
  /** Tries to give the keys a new life. */
  extend(ttl: number): Promise<Extension>;
  /** Lets the validity end earlier by so many milliseconds. */
  shorten(milliseconds: number): void;
  /** Agrees on a fencing token, not smaller than `atLeast`; `undefined` if there was no agreement. */
  drawToken(atLeast?: number): Promise<number | undefined>;
  /** Gives the keys up. Resolves at a quorum; never rejects. */
  release(keepFor: number): Promise<void>;
  /** Ends the round that is under way. */
  giveUp(): void;
}
