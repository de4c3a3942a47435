import type { WakeUp } from '../core/master.interface.js';
import { queueMicrotask } from './event-loop.js';

/** Who waits for which key, and who listens. */
export class MemoryQueues {
  /** Of each queue, who waits there and since when, in milliseconds. */
  private readonly queues = new Map<string, Map<string, number>>();
  private readonly listeners = new Map<string, WakeUp>();

  listen(waiter: string, listener: WakeUp | undefined): void {
    if (listener) this.listeners.set(waiter, listener);
    else this.listeners.delete(waiter);
  }

  /** Takes a place, unless there is one already. */
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

  /** Number of queues in which somebody waits. */
  get size(): number {
    return this.queues.size;
  }

  /** Wakes who has waited longest of those that listen, and tells who that is. */
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
