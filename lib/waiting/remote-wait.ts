import type { KeyNames } from '../settings/keyspace.js';
import type { HeldReply, QueueTicket } from '../masters/master.interface.js';
import type { QuorumCall } from '../redlock/quorum.js';
import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';

interface RemoteWaitOptions {
  readonly masters: readonly CircuitBreakerMaster[];
  // Of permits, the names of all: any of them may be reserved for this process.
  readonly names: KeyNames;
  // All keys have one queue, as those of permits.
  readonly hasOneQueue: boolean;
  readonly isShared: boolean;
  readonly listener: string;
  // Without a key: notifications may have been lost.
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

// Where an acquisition waits: in the queues of its home masters and, for an exclusive key that shared holders have, by the
// writer key on all masters, so that no quorum grants the key to shared requests that come later.
export class RemoteWait {
  private hasDeferred = false;
  // More than one home master if the first has failed.
  private readonly queuedAt = new Set<CircuitBreakerMaster>();

  constructor(private readonly options: RemoteWaitOptions) {}

  // The entry for a queue, in case that the master refuses.
  join(home: CircuitBreakerMaster, waited: number): QueueTicket {
    const { names, hasOneQueue, listener, notified } = this.options;
    this.queuedAt.add(home);
    home.listen(listener, (key) => notified(home, key));
    // Protocol 11.11
    const queues = hasOneQueue ? names.queues.slice(0, 1) : names.queues;
    return { queues, waiter: listener, waited, reserveFor: home.roundTrip.reservation };
  }

  // A grant by the home master removes this process from its queue.
  noteReply(home: CircuitBreakerMaster | undefined, quorumCall: QuorumCall): void {
    if (home && quorumCall.isGrantedBy(home)) this.queuedAt.delete(home);
  }

  // Keeps later requests for shared keys from passing this one. One of several keys may be free, and must not be closed for
  // others: a call that has one of them and waits for another one would wait for this one.
  deferShared({ answered }: QuorumCall, waited: number): void {
    const isShared = answered.some((answer) => answer.kind === 'held' && (answer as HeldReply).sharedBy !== undefined);
    if (this.options.names.keys.length > 1 || (!isShared && !this.hasDeferred)) return;
    // Protocol 11.6
    this.hasDeferred = true;
    const { masters, names, listener } = this.options;
    const { keys, writerKeys } = names;
    const request = { op: 'defer-readers', keys, writerKeys, waiter: listener, waited } as const;
    for (const master of masters) master.ask(request, () => undefined); // @mutant writer-key-on-one-master
  }

  // The writer keys also keep out requests for several keys, which wait at other masters.
  // Protocol 5.7 and 11.6
  leave(): void {
    const { masters, names, isShared, listener } = this.options;
    const { keys, queues } = names;
    const request = { op: 'leave', keys, queues, waiter: listener, isShared } as const;
    const asked = this.hasDeferred ? masters : this.queuedAt; // @mutant writer-key-left-behind
    for (const master of asked) master.ask(request, () => undefined);
    this.hasDeferred = false;
    this.queuedAt.clear();
  }
}
