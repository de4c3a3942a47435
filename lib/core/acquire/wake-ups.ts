import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';
import type { KeyNames, Keyspace } from '../keyspace.js';
import type { HomeMasters } from './home-masters.js';
import { queueOfPermits } from './permit-choice.js';
import type { WaitQueue } from './wait-queue.js';

/** The dependencies of the wake-ups. */
export interface WakeUpContext {
  readonly keyspace: Keyspace;
  readonly homeMasters: HomeMasters;
  /** The waiters of this process. */
  readonly queue: WaitQueue;
  /** The name under which this process listens for notifications. */
  readonly listener: string;
}

/** Leads the notifications of the masters to the waiters of this process. */
export class WakeUps {
  constructor(private readonly context: WakeUpContext) {}

  /** A master reports that this process is next for `key` or, without a key, that notifications may have been lost. */
  wake(master: CircuitBreakerMaster, key: string | undefined): void {
    const { homeMasters, keyspace, queue } = this.context;
    if (key === undefined) {
      homeMasters.noteLostNotifications(master);
      queue.wakeAll();
      return;
    }
    homeMasters.noteNotification(master);
    const permit = keyspace.permitOf(key);
    if (permit) {
      const { resource, slot } = permit;
      const isUsed = queue.notify(queueOfPermits(resource), slot);
      // Protocol 11.11
      if (!isUsed) this.passOn(master, keyspace.namesOfSlots(resource, [slot]));
      return;
    }
    const resource = keyspace.resourceOf(key);
    if (!queue.notify(resource)) this.passOn(master, keyspace.namesOf([resource]));
  }

  /** The waiter has given up in the meantime: passes its turn to the next process. */
  private passOn(master: CircuitBreakerMaster, { keys, queues }: KeyNames): void {
    const request = { op: 'leave', keys, queues, waiter: this.context.listener } as const;
    // It is not known for which of the two this process was next.
    for (const isShared of [false, true]) master.ask({ ...request, isShared }, () => undefined);
  }
}
