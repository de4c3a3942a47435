/** Counts the releases of a process that the masters have not answered yet. */
export class PendingReleases {
  private pending = 0;
  private done: (() => void) | undefined;

  begin(): void {
    this.pending++;
  }

  end(): void {
    if (--this.pending === 0) this.done?.();
  }

  /** Resolves when none is pending. */
  async settled(): Promise<void> {
    if (this.pending > 0) await new Promise<void>((resolve) => (this.done = resolve));
  }
}
