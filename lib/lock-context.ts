import { AsyncLocalStorage } from 'node:async_hooks';

interface Frame<Held> {
  readonly held: Held;
  readonly outer: Frame<Held> | undefined;
}

/** What the running call chain works under, innermost first. */
export class LockContext<Held> {
  private readonly storage = new AsyncLocalStorage<Frame<Held>>();

  /** Runs work, and everything it calls and awaits, under what is held for it. */
  run<T>(held: Held, work: () => T): T {
    return this.storage.run({ held, outer: this.storage.getStore() }, work);
  }

  /** The innermost that the call chain works under and that satisfies the condition. */
  find(condition: (held: Held) => boolean): Held | undefined {
    let frame = this.storage.getStore();
    while (frame && !condition(frame.held)) frame = frame.outer;
    return frame?.held;
  }

  /** No more calls: a storage that stays enabled costs every promise of the process a little, for ever. */
  close(): void {
    this.storage.disable();
  }
}
