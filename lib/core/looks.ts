import type { Random } from './random.js';

/** Wake-ups can be lost: a waiter also looks for itself, the first time after so many milliseconds at most. */
const FIRST_LOOK = 750;
/** Looks become rarer, but places in a queue live for 5 s only, and have to be taken again before. */
const RAREST_LOOK = 4_000;
/** A look comes after this share of its bound at least. */
const LEAST = 1 / 3;
/** The gate is asked each time. What it says need not be what a quorum says: so often, everybody is asked. */
const EVERYBODY_EVERY = 8;
/** After a split vote or a failure, the first retry comes at a random moment within this bound, in milliseconds. */
const RETRY_WITHIN = 20;

/** When a waiter looks for itself, and where. Random, so that those who began together do not go on together. */
export class Looks {
  /** Attempts in a row after which the gate's word was of no use: it gave none, or the other masters disagreed. */
  private failures = 0;
  /** Looks in a row that nobody has called for. */
  private quiet = 0;

  constructor(private readonly random: Random) {}

  /** Whether the gate's word was of no use, the last time. */
  get areFailing(): boolean {
    return this.failures > 0;
  }

  noteFailure(): void {
    this.failures++;
  }

  noteRefusal(): void {
    this.failures = 0;
  }

  /** Somebody has woken the waiter: wake-ups arrive. */
  noteWakeUp(): void {
    this.quiet = 0;
  }

  noteQuiet(): void {
    this.quiet++;
  }

  /**
   * Milliseconds until the next look.
   *
   * @param called whether wake-ups are known to arrive; otherwise looks stay frequent
   */
  delay(called: boolean): number {
    const chance = this.random.fraction();
    // Back to a gate that fails only after a while: it may fail at once, again and again.
    if (this.failures > 0) return Math.max(1, chance * Math.min(FIRST_LOOK, RETRY_WITHIN * 2 ** this.failures));
    const most = called ? Math.min(RAREST_LOOK, FIRST_LOOK * 2 ** this.quiet) : FIRST_LOOK;
    return most * (LEAST + chance * (1 - LEAST));
  }

  /** Whether it is time to ask everybody. */
  isWide(called: boolean): boolean {
    return !called || this.quiet % EVERYBODY_EVERY === 0;
  }
}
