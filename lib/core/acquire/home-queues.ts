import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';
import type { KeyNames } from '../keyspace.js';
import type { QueueTicket } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

interface HomeQueuesOptions {
  /** Of permits, the names of all: any of them may be reserved for this process. */
  readonly names: Pick<KeyNames, 'keys' | 'queues'>;
  /** Whether all keys have one queue, as those of permits. */
  readonly hasOneQueue: boolean;
  readonly isShared: boolean;
  /** The name under which this process listens. */
  readonly listener: string;
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

/** The home masters in whose queues one acquisition waits: more than one if the first has failed. */
export class HomeQueues {
  private queuedAt: Set<CircuitBreakerMaster> | undefined;

  constructor(private readonly options: HomeQueuesOptions) {}

  /** The entry for a queue, in case that the master refuses. */
  join(home: CircuitBreakerMaster, waited: number): QueueTicket {
    const { names, hasOneQueue, listener, notified } = this.options;
    (this.queuedAt ??= new Set()).add(home);
    home.listen(listener, (key) => notified(home, key));
    // Protocol 11.11
    return { queues: hasOneQueue ? names.queues.slice(0, 1) : names.queues, waiter: listener, waited };
  }

  /** A grant by the home master removes this process from its queue. */
  note(home: CircuitBreakerMaster | undefined, quorumCall: QuorumCall): void {
    if (home && this.queuedAt && quorumCall.isGrantedBy(home)) this.queuedAt.delete(home);
  }

  /** The next waiter of this process takes over the entry, with its age. */
  passTo(waited: number): void {
    const { names, isShared, listener } = this.options;
    const { keys, queues } = names;
    const request = { op: 'leave', keys, queues, waiter: listener, isShared, nextWaited: waited } as const;
    for (const master of this.queuedAt ?? []) master.ask(request, () => undefined);
  }

  leave(): void {
    if (!this.queuedAt) return;
    const { names, isShared, listener } = this.options;
    const { keys, queues } = names;
    const request = { op: 'leave', keys, queues, waiter: listener, isShared } as const;
    for (const master of this.queuedAt) master.ask(request, () => undefined);
    this.queuedAt = undefined;
  }
}
