import { Condition } from './clock.js';

// Those that no quorum has answered yet.
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

  settled(): Promise<void> {
    return this.none.met();
  }
}
