import type { Lease } from '../redlock/lease.js';
import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';
import type { Master } from '../masters/master.interface.js';
import { MasterSet } from '../masters/master-set.js';
import { PermitBook } from '../kinds/permit-book.js';
import { PermitChoice, queueOfPermits, queuesOf } from '../kinds/permits.js';
import { firstLocks, type HeldLock, Inspector, type OwnLocks } from '../operate/inspector.js';
import type { LockObserver, OnHeld } from '../operate/observer.js';
import type { Clock } from '../redlock/clock.js';
import { LockServiceStoppedError } from '../redlock/errors.js';
import { type Random, TokenSource } from '../redlock/holder.js';
import { Redlock } from '../redlock/redlock.js';
import { Keyspace } from '../settings/keyspace.js';
import { checkPermits } from '../settings/resources.js';
import type { CallSettings, Settings } from '../settings/settings.js';
import type { WaitContext } from '../waiting/fair-wait.js';
import { HomeMasters } from '../waiting/home-masters.js';
import type { OwnHolder } from '../waiting/lock-not-acquired.error.js';
import { NestedWaiters } from '../waiting/nested-waiters.js';
import { type Capacity, WaitQueue } from '../waiting/process-queue.js';
import { asOwn, callOf, type HeldCall, slotOf } from './held-call.js';
import { Lock, type LockContext } from './lock.js';
import { type CallService, LockCall } from './lock-call.js';

interface LockManagerContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  // What to do while masters cannot vote: the end of a `QuorumUnavailableError`'s message.
  readonly advice?: string | undefined;
  // Makes the signals of locks.
  readonly controller?: () => AbortController;
  // Told of each ttl, in milliseconds, that an extension by hand is given.
  readonly noteTtl?: (where: string, ttl: number) => void;
}

interface Caller {
  // What a refusal means to the caller, for observers.
  readonly onHeld: OnHeld;
  // Its call chain holds a lock.
  readonly isNested: boolean;
  // The decorated method, for the errors of other calls.
  readonly caller?: string | undefined;
}

interface Start<T> extends Caller {
  readonly begin: (lock: Lock) => T;
  // The work is the code that awaits the result: no other reaction to a promise may block the process before it.
  readonly isAwaited: boolean;
}

const itself = (lock: Lock): Lock => lock;

const SHARED: Capacity = Object.freeze({ isShared: true, limit: 1 });

// The locks of one service: the algorithm, with masters, queues, kinds of locks and observers around it.
export class LockManager {
  readonly inspector: Inspector;
  readonly masters: MasterSet;
  private readonly redlock: Redlock;
  private readonly homeMasters: HomeMasters;
  private readonly keyspace: Keyspace;
  private readonly waits: WaitContext;
  private readonly nestedWaits: WaitContext;
  private readonly queue = new WaitQueue();
  private readonly nested = new NestedWaiters();
  private readonly permitBook: PermitBook;
  private readonly lockContext: LockContext;
  private readonly service: CallService;
  private closing: Promise<void> | undefined;

  constructor(
    masters: readonly Master[],
    settings: Settings,
    private readonly context: LockManagerContext,
  ) {
    const { clock, random, observer, advice, controller = () => new AbortController(), noteTtl } = context;
    this.keyspace = new Keyspace(settings.keyPrefix);
    this.masters = new MasterSet({
      ...{ masters, keyspace: this.keyspace, settings, clock, observer, advice },
      noteWaiters: (keys) => this.homeMasters.noteContention(keys),
    });
    this.masters.onReady((master) => this.noteReady(master));
    const { all } = this.masters;
    this.redlock = new Redlock({
      ...{ masters: all, timing: settings, clock, random, controller },
      tokens: new TokenSource(random, settings.instance),
      reopened: () => this.masters.reopened(),
      lost: (loss) => observer.lockLost?.(loss),
      inDanger: (resources, remaining, replies) => observer.lockInDanger?.(resources, remaining, replies),
    });
    this.lockContext = { settings, clock, random, masters: all, noteTtl };
    this.service = { clock, observer, choosePermits: this.permitsOf, letGo: this.letGo };
    this.homeMasters = new HomeMasters(all, clock);
    this.permitBook = new PermitBook(this.keyspace, random);
    this.inspector = new Inspector({
      masters: all,
      keyspace: this.keyspace,
      clock,
      timeout: settings.masterTimeout,
    });
    const id = random.token();
    const [listener, nestedListener] = [id, `${id}~`].map((each) => this.keyspace.channelOf(each)) as [string, string];
    this.waits = {
      ...{ masters: all, homeMasters: this.homeMasters, keyspace: this.keyspace, settings, clock, random, observer },
      advice,
      listener,
      ownHolder: (resources, call) => this.ownHolder(resources, call),
      notified: (master, key) => this.wake(this.queue, listener, master, key),
    };
    this.nestedWaits = {
      ...this.waits,
      listener: nestedListener,
      notified: (master, key) => this.wake(this.nested, nestedListener, master, key),
    };
  }

  get clock(): Clock {
    return this.context.clock;
  }

  get isStopped(): boolean {
    return this.redlock.isStopped;
  }

  get held(): readonly HeldLock[] {
    return this.redlock.held.members
      .filter(({ isHeld }) => isHeld)
      .map((lease) => {
        const { resources, acquiredAt, remaining } = lease;
        const { call, caller } = callOf(lease);
        const mode = call.isShared ? 'shared' : 'exclusive';
        return { resources, mode, slot: slotOf(lease), since: new Date(acquiredAt.wall), remaining, caller };
      });
  }

  ownHeld(limit: number): OwnLocks {
    return firstLocks(this.redlock.held.members, limit, (lease) => {
      const { isShared } = callOf(lease).call;
      const slot = slotOf(lease);
      return {
        resources: lease.resources,
        since: lease.acquiredAt.wall,
        ...(isShared && { mode: 'shared' }),
        ...(slot !== undefined && { slot }),
      };
    });
  }

  ownWaiting(limit: number): OwnLocks {
    return firstLocks(this.calls, limit, ({ resources, since, terms }) => ({
      resources,
      since: since.wall,
      ...(terms.isShared && { mode: 'shared' }),
      ...(terms.permits !== undefined && { permits: terms.permits }),
    }));
  }

  // Rejects with a `LockError`, or with the reason of the signal. The lock is held when the promise resolves.
  acquire(resources: readonly string[], call: CallSettings, options: Partial<Caller> = {}): Promise<Lock> {
    const { onHeld = 'fail', isNested = false, caller } = options;
    return this.start(resources, call, { onHeld, begin: itself, isAwaited: true, isNested, caller });
  }

  // Begins work in the same turn in which the lock is seen to be held. Throws what is known at once.
  start<T>(resources: readonly string[], call: CallSettings, options: Start<T>): Promise<T> {
    const { begin, isAwaited, isNested } = options;
    call.signal?.throwIfAborted();
    if (this.isStopped) throw new LockServiceStoppedError(resources);
    for (const master of this.masters.all) master.check(resources);
    checkPermits(resources, call.permits);
    const lockCall = this.newCall(resources, call, options);
    this.queueUp(lockCall, isNested);
    return this.redlock.start(lockCall, {
      isAwaited,
      begin: (lease) => {
        lockCall.begun(lease);
        return begin(new Lock(lease, this.lockContext));
      },
    });
  }

  // Held locks are kept.
  stop(): void {
    this.redlock.stop();
  }

  // Waits at most `timeout` milliseconds until all locks are released and no acquisition is under way. Locks that are
  // still held after that are lost with the cause `shutdown`.
  drain(timeout: number): Promise<void> {
    return this.redlock.drain(timeout);
  }

  // Acquisitions end at once, and all releases are given `masterTimeout` to be answered by a quorum. Then each master
  // closes, within a time of its own.
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    await this.redlock.end();
    for (const { listener } of [this.waits, this.nestedWaits]) {
      for (const master of this.masters.all) master.listen(listener, undefined);
    }
    await this.masters.close();
  }

  private get calls(): readonly LockCall[] {
    return this.redlock.calls.members.filter((call) => call instanceof LockCall);
  }

  private newCall(resources: readonly string[], call: CallSettings, { onHeld, isNested, caller }: Caller): LockCall {
    const waits = isNested ? this.nestedWaits : this.waits;
    return new LockCall({ service: this.service, waits, resources, call, onHeld, caller });
  }

  // A nested call does not join the queues of this process, in which calls may wait for its chain. An acquisition that does
  // not wait makes its single attempt without queueing behind those that do.
  private queueUp(lockCall: LockCall, isNested: boolean): void {
    const { waiter, resources, terms } = lockCall;
    const { permits, isShared, wait } = terms;
    const queues = permits === undefined ? resources : resources.map(queueOfPermits);
    const capacity = permits === undefined ? (isShared ? SHARED : undefined) : { isShared: false, limit: permits };
    const mayJoin = !isNested && (wait > 0 || this.queue.isEmpty(queues)); // @mutant nested-call-joins-the-queue
    if (mayJoin) lockCall.entry = this.queue.join(queues, waiter, capacity);
    if (isNested) lockCall.leave = this.nested.add(queues, waiter, capacity?.limit ?? 1);
  }

  private readonly permitsOf = (
    resources: readonly string[],
    permits: number | undefined,
  ): PermitChoice | undefined => {
    const [resource = ''] = resources;
    return permits === undefined ? undefined : new PermitChoice(this.permitBook, resource, permits);
  };

  // One permit that ends is enough, but each of the locks on several resources must end.
  private ownHolder(resources: readonly string[], { permits }: CallSettings): OwnHolder | undefined {
    const leases = this.redlock.held.members.filter(
      (lease) =>
        (slotOf(lease) !== undefined) === (permits !== undefined) &&
        lease.resources.some((resource) => resources.includes(resource)),
    );
    const [first, ...others] = leases
      .map(asOwn)
      .sort((a, b) => (permits === undefined ? b.freeAfter - a.freeAfter : a.freeAfter - b.freeAfter));
    return first && others.length > 0 ? { ...first, holder: undefined } : first;
  }

  private readonly letGo = ({ entry, resources }: HeldCall, lease: Lease): void => {
    const slot = slotOf(lease);
    const [resource = ''] = resources;
    if (slot !== undefined) this.permitBook.free(resource, slot, true);
    // A call whose lock ended before it was used keeps its entry.
    if (entry) {
      if (lease.isUsed) entry.leave();
    } else this.queue.wakeFirst(queuesOf({ resources, slot }));
  };

  // Without a key: notifications may have been lost.
  private wake(
    waiters: WaitQueue | NestedWaiters,
    listener: string,
    master: CircuitBreakerMaster,
    key: string | undefined,
  ): void {
    const { homeMasters, keyspace } = this;
    if (key === undefined) {
      homeMasters.noteLostNotifications(master);
      waiters.wakeAll('notifications-lost', master.name);
      return;
    }
    homeMasters.noteNotification(master);
    const { resource, slot } = keyspace.targetOf(key);
    // Protocol 11.11
    if (waiters.notify(slot === undefined ? resource : queueOfPermits(resource), master.name, slot)) return;
    // The waiter has given up in the meantime: it is the turn of the next process.
    const { keys, queues } = keyspace.namesOfTarget({ resource, slot });
    const request = { op: 'leave', keys, queues, waiter: listener } as const;
    // It is not known for which of the two this process was next.
    for (const isShared of [false, true]) master.ask({ ...request, isShared }, () => undefined);
  }

  private noteReady({ name }: CircuitBreakerMaster): void {
    this.queue.wakeAll('master-ready', name);
    this.nested.wakeAll('master-ready', name);
  }
}
