import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';
import type { KeyNames } from '../keyspace.js';
import type { QueueTicket } from '../master.interface.js';
import { Barrier } from './barrier.js';
import { HomeQueues } from './home-queues.js';
import type { QuorumCall } from './quorum-call.js';

interface PlacesOptions {
  readonly masters: readonly CircuitBreakerMaster[];
  /** Of permits, the names of all: any of them may be reserved for this process. */
  readonly names: KeyNames;
  /** Whether all keys have one queue, as those of permits. */
  readonly hasOneQueue: boolean;
  readonly isShared: boolean;
  /** The name under which this process listens. */
  readonly listener: string;
  /** Called when a master reports that this process is next or, without a key, that notifications may have been lost. */
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

/** Where an acquisition waits on the masters: in the queues of its home masters, and at the barriers of its keys. */
export class PlacesOnMasters {
  private homeQueues: HomeQueues | undefined;
  private barrier: Barrier | undefined;

  constructor(private readonly options: PlacesOptions) {}

  /** Whether shared holders have refused one of the keys. */
  get hasSharedHolders(): boolean {
    return this.barrier?.hasSharedHolders === true;
  }

  /** The entry for a queue, in case that the master refuses. */
  join(home: CircuitBreakerMaster, waited: number): QueueTicket {
    this.homeQueues ??= new HomeQueues(this.options);
    return this.homeQueues.join(home, waited);
  }

  /** A grant by the home master removes this process from its queue. */
  noteReply(home: CircuitBreakerMaster | undefined, quorumCall: QuorumCall): void {
    this.homeQueues?.note(home, quorumCall);
  }

  /** After an attempt on exclusive keys that was refused: keeps later requests for shared ones from passing this one. */
  deferShared(quorumCall: QuorumCall, waited: number): void {
    const { masters, names, listener } = this.options;
    this.barrier ??= new Barrier(masters, names, listener);
    this.barrier.note(quorumCall, waited);
  }

  /** The next waiter of this process takes over, with its age. */
  passTo(waited: number): void {
    this.barrier?.passTo(waited);
    this.homeQueues?.passTo(waited);
  }

  leave(): void {
    // Protocol 5.7
    // First the barrier: it would keep those that are woken from taking the key.
    this.barrier?.leave();
    this.homeQueues?.leave();
  }
}
