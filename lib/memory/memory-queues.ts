import type { NotificationListener } from '../core/master.interface.js';
import { queueMicrotask } from './event-loop.js';

/** The queues of waiting processes, and the listeners of these processes. */
export class MemoryQueues {
  /** For each queue, its waiters and the time since which each of them waits, in milliseconds. */
  private readonly queues = new Map<string, Map<string, number>>();
  private readonly listeners = new Map<string, NotificationListener>();

  listen(waiter: string, listener: NotificationListener | undefined): void {
    if (listener) this.listeners.set(waiter, listener);
    else this.listeners.delete(waiter);
  }

  /** Adds a waiter to a queue, unless it is there already. */
  join(queue: string, waiter: string, since: number): void {
    const places = this.queues.get(queue) ?? new Map<string, number>();
    this.queues.set(queue, places);
    if (!places.has(waiter)) places.set(waiter, since);
  }

  leave(queue: string, waiter: string): void {
    const places = this.queues.get(queue);
    places?.delete(waiter);
    if (places?.size === 0) this.queues.delete(queue);
  }

  isEmpty(queue: string): boolean {
    return !this.queues.has(queue);
  }

  /** Number of queues with a waiter. */
  get size(): number {
    return this.queues.size;
  }

  /** Wakes the longest-waiting process that listens, and returns its name. */
  wakeNext(queue: string, key: string): string | undefined {
    for (;;) {
      const [next] = [...(this.queues.get(queue) ?? [])].sort(([, a], [, b]) => a - b);
      if (!next) return undefined;
      const [waiter] = next;
      this.leave(queue, waiter);
      const wake = this.listeners.get(waiter);
      if (!wake) continue;
      queueMicrotask(() => wake(key));
      return waiter;
    }
  }
}
