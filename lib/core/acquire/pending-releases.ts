import { Condition } from '../condition.js';

/** Counts the releases of a process that the masters have not answered yet. */
export class PendingReleases {
  private pending = 0;
  private readonly none = new Condition(() => this.pending === 0);

  begin(): void {
    this.pending++;
  }

  end(): void {
    this.pending--;
    this.none.check();
  }

  /** Resolves when none is pending. */
  settled(): Promise<void> {
    return this.none.met();
  }
}
