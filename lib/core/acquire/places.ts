import type { KeyNames, Keyspace } from '../keyspace.js';
import type { Master, QueueTicket } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';
import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';
import type { HomeMasters } from './home-masters.js';
import { queueOfPermits } from './permits.js';
import type { WaitQueue } from './process-queue.js';

// Where an acquisition of exclusive keys stands while shared holders have them: on all masters, so that no quorum
// grants the keys to shared requests that come later.
class Barrier {
  hasSharedHolders = false;
  private isStanding = false;

  constructor(
    private readonly masters: readonly Master[],
    private readonly names: KeyNames,
    private readonly waiter: string,
  ) {}

  // One of several keys may be free, and must not be closed for others: they are taken one by one after a while, each
  // with a barrier.
  note({ answered }: QuorumCall, waited: number): void {
    const isShared = answered.some((answer) => answer.kind === 'held' && answer.sharedBy !== undefined);
    if (isShared) this.hasSharedHolders = true;
    if (this.names.keys.length > 1 || (!isShared && !this.isStanding)) return;
    // Protocol 11.6
    this.isStanding = true;
    this.ask(waited);
  }

  // The next waiter of this process takes over the entry, with its age.
  passTo(waited: number): void {
    if (this.isStanding) this.ask(waited);
  }

  leave(): void {
    if (this.isStanding) this.ask(undefined);
    this.isStanding = false;
  }

  private ask(waited: number | undefined): void {
    const { keys, barriers } = this.names;
    const request = { op: 'want', keys, barriers, waiter: this.waiter, waited } as const;
    for (const master of this.masters) master.ask(request, () => undefined); // @mutant barrier-on-one-master
  }
}

interface HomeQueuesOptions {
  // Of permits, the names of all: any of them may be reserved for this process.
  readonly names: Pick<KeyNames, 'keys' | 'queues'>;
  // All keys have one queue, as those of permits.
  readonly hasOneQueue: boolean;
  readonly isShared: boolean;
  readonly listener: string;
  readonly notified: (master: CircuitBreakerMaster, key: string | undefined) => void;
}

// More than one home master if the first has failed.
class HomeQueues {
  private queuedAt: Set<CircuitBreakerMaster> | undefined;

  constructor(private readonly options: HomeQueuesOptions) {}

  // The entry for a queue, in case that the master refuses.
  join(home: CircuitBreakerMaster, waited: number): QueueTicket {
    const { names, hasOneQueue, listener, notified } = this.options;
    (this.queuedAt ??= new Set()).add(home);
    home.listen(listener, (key) => notified(home, key));
    // Protocol 11.11
    return { queues: hasOneQueue ? names.queues.slice(0, 1) : names.queues, waiter: listener, waited };
  }

  // A grant by the home master removes this process from its queue.
  note(home: CircuitBreakerMaster | undefined, quorumCall: QuorumCall): void {
    if (home && this.queuedAt && quorumCall.isGrantedBy(home)) this.queuedAt.delete(home);
  }

  // The next waiter of this process takes over the entry, with its age.
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

interface PlacesOptions {
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

// Where an acquisition waits: in the queues of its home masters, and at the barriers of its keys.
export class RemoteWait {
  private homeQueues: HomeQueues | undefined;
  private barrier: Barrier | undefined;

  constructor(private readonly options: PlacesOptions) {}

  get hasSharedHolders(): boolean {
    return this.barrier?.hasSharedHolders === true;
  }

  join(home: CircuitBreakerMaster, waited: number): QueueTicket {
    this.homeQueues ??= new HomeQueues(this.options);
    return this.homeQueues.join(home, waited);
  }

  noteReply(home: CircuitBreakerMaster | undefined, quorumCall: QuorumCall): void {
    this.homeQueues?.note(home, quorumCall);
  }

  // Keeps later requests for shared keys from passing this one.
  deferShared(quorumCall: QuorumCall, waited: number): void {
    const { masters, names, listener } = this.options;
    this.barrier ??= new Barrier(masters, names, listener);
    this.barrier.note(quorumCall, waited);
  }

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

interface WakeUpContext {
  readonly keyspace: Keyspace;
  readonly homeMasters: HomeMasters;
  readonly queue: WaitQueue;
  readonly listener: string;
}

export class WakeUps {
  constructor(private readonly context: WakeUpContext) {}

  // Without a key: notifications may have been lost.
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

  // The waiter has given up in the meantime: it is the turn of the next process.
  private passOn(master: CircuitBreakerMaster, { keys, queues }: KeyNames): void {
    const request = { op: 'leave', keys, queues, waiter: this.context.listener } as const;
    // It is not known for which of the two this process was next.
    for (const isShared of [false, true]) master.ask({ ...request, isShared }, () => undefined);
  }
}
