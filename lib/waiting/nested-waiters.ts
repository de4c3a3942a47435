import type { WakeCause } from '../operate/observer.js';
import type { Waiter } from './waiter.js';

interface NestedWaiter {
  readonly waiter: Waiter;
  // Of permits, how many there are; 1 for a lock.
  readonly limit: number;
}

// Calls whose call chain holds a lock. Those that wait in the queues of this process may wait for that lock, so a nested
// call does not join them: it asks the masters as another process would, under a name of its own.
// Protocol 5.2
export class NestedWaiters {
  // By the queue, in the order of their arrival.
  private readonly waiters = new Map<string, Set<NestedWaiter>>();

  // Returns a function that removes it.
  add(queues: readonly string[], waiter: Waiter, limit: number): () => void {
    const nested = { waiter, limit };
    for (const queue of queues) this.waiters.set(queue, (this.waiters.get(queue) ?? new Set()).add(nested));
    return () => {
      for (const queue of queues) this.remove(queue, nested);
    };
  }

  // `slot`: the permit that `master` has reserved. False if no waiter can use it.
  notify(queue: string, master: string, slot = 0): boolean {
    const waiters = [...(this.waiters.get(queue) ?? [])];
    const next = waiters.find(({ waiter, limit }) => slot < limit && !waiter.isOver);
    // The master has removed all of them from its queue.
    for (const each of waiters) each.waiter.wake(each === next ? 'reserved' : 'dequeued', master);
    return next !== undefined;
  }

  wakeAll(cause: WakeCause, master: string): void {
    for (const waiters of this.waiters.values()) for (const { waiter } of waiters) waiter.wake(cause, master);
  }

  private remove(queue: string, nested: NestedWaiter): void {
    const waiters = this.waiters.get(queue);
    waiters?.delete(nested);
    if (waiters?.size === 0) this.waiters.delete(queue);
    // They have one entry at the masters, which was that of the removed one.
    for (const { waiter } of waiters ?? []) waiter.wake('dequeued');
  }
}
