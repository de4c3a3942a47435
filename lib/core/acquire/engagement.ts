import type { Witness } from '../witness.interface.js';

/** What the witness knows of one attempt, and of the lock that may result from it. */
export class Engagement {
  /** Identifies the attempt to the witness; `undefined` if it does not count or is over. */
  private attempt: number | undefined;
  private isLock = false;

  constructor(private readonly witness: Witness) {}

  /** Begins the attempt, once. */
  begin(): void {
    this.attempt ??= this.witness.beginAttempt();
  }

  /** Whether the attempt is under way and counts. */
  get isCounted(): boolean {
    return this.attempt !== undefined;
  }

  /** A quorum has granted. Returns whether the lock counts. */
  confirm(): boolean {
    this.isLock = this.attempt !== undefined && this.witness.confirm(this.attempt);
    this.attempt = undefined;
    return this.isLock;
  }

  /**
   * The attempt or the lock has ended.
   *
   * @param keptFor milliseconds for which the keys stay taken
   */
  end(keptFor = 0): void {
    if (this.attempt !== undefined) this.witness.abandon(this.attempt);
    if (this.isLock) this.witness.disengage(keptFor);
    this.attempt = undefined;
    this.isLock = false;
  }
}
