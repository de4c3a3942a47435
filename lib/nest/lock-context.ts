import { AsyncLocalStorage } from 'node:async_hooks';

interface Frame<Held> {
  readonly held: Held;
  readonly outer: Frame<Held> | undefined;
}

/** The locks that the running call chain holds, innermost first. */
export class LockContext<Held> {
  private readonly storage = new AsyncLocalStorage<Frame<Held>>();

  /** Runs work, and everything that it calls and awaits, under `held`. */
  run<T>(held: Held, work: () => T): T {
    return this.storage.run({ held, outer: this.storage.getStore() }, work);
  }

  /** Whether the running call chain holds none. */
  get isEmpty(): boolean {
    return this.storage.getStore() === undefined;
  }

  /** Finds the innermost entry of the call chain that satisfies the condition. */
  find(condition: (held: Held) => boolean): Held | undefined {
    let frame = this.storage.getStore();
    while (frame && !condition(frame.held)) frame = frame.outer;
    return frame?.held;
  }

  /** Called after the last use: a storage that stays enabled slows down every promise of the process. */
  close(): void {
    this.storage.disable();
  }
}
