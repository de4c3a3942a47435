import { Acquisition, type AcquisitionContext } from './acquire/acquisition.js';
import { type Clock, Condition } from './clock.js';
import { Contention, Lines } from './contention/contention.js';
import { connectMasters, probeMasters } from './health/connect.js';
import { isNotAcquired, isStopped, LockServiceStoppedError, type MasterReport, RedlockConfigError } from './errors.js';
import { HomeMasters } from './acquire/home-masters.js';
import { type Random, TokenSource } from './holder.js';
import { Inspector, firstLocks, type OwnLocks } from './inspector.js';
import { Keyspace } from './keyspace.js';
import { type AcquiredKeys, Lease, type LeaseContext } from './lease.js';
import { LinkedList } from './acquire/linked-list.js';
import { Lock } from './lock.js';
import type { Master, MasterIdentity } from './master.interface.js';
import { type AcquisitionKind, AcquisitionRecorder, type LockObserver, type OnHeld } from './observer.js';
import { quorumOf } from './acquire/quorum-call.js';
import { checkPermits } from './settings/resources.js';
import type { CallSettings, Settings } from './settings/settings.js';
import { type RedlockStatus, summarize } from './health/status.js';
import { PendingReleases } from './acquire/quorum-lock.js';
import { PermitBook, PermitChoice, queueOfPermits, queuesOf } from './acquire/permits.js';
import { type Capacity, WaitQueue } from './acquire/process-queue.js';
import { WallClockWatch } from './wall-clock.js';
import { type HeldByChain, Waiter } from './acquire/waiter.js';
import { CircuitBreakerMaster } from './health/circuit-breaker-master.js';
import { NO_WITNESS, type Witness } from './witness.interface.js';

interface RedlockContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: LockObserver;
  // Reports the locks of this process to masters that have lost their data.
  readonly witness?: Witness | undefined;
  // What to do while masters cannot vote: the end of a `QuorumUnavailableError`'s message.
  readonly advice?: string | undefined;
}

interface Wanted {
  // In this process.
  readonly queues: readonly string[];
  readonly capacity: Capacity | undefined;
  readonly permits?: PermitChoice;
}

interface Start<T> {
  // What a refusal means to the caller, for observers.
  readonly onHeld: OnHeld;
  readonly begin: (lock: Lock) => T;
  // The work is the code that awaits the result: no other reaction to a promise may block the process before it.
  readonly isAwaited: boolean;
  readonly held: HeldByChain | undefined;
}

const itself = (lock: Lock): Lock => lock;

const SHARED: Capacity = Object.freeze({ isShared: true, limit: 1 });

// Distributed locks over N independent masters.
// @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
export class Redlock {
  readonly inspector: Inspector;
  readonly contention = new Contention();
  private readonly masters: readonly CircuitBreakerMaster[];
  private readonly quorum: number;
  private readonly homeMasters: HomeMasters;
  private readonly acquisitionContext: AcquisitionContext;
  private readonly lines: Lines;
  private readonly keyspace: Keyspace;
  private readonly queue = new WaitQueue();
  private readonly permitBook: PermitBook;
  private readonly waiting = new LinkedList<Waiter>();
  private readonly held = new LinkedList<Lease>();
  private readonly leases: LeaseContext;
  private readonly wallClock: WallClockWatch;
  private readonly releases = new PendingReleases();
  private readonly standstill = { total: 0 };
  private stopped = false;
  private readonly noneWaits = new Condition(() => this.waiting.isEmpty);
  private readonly idle = new Condition(() => this.held.isEmpty && this.waiting.isEmpty);
  private closing: Promise<void> | undefined;

  constructor(
    masters: readonly Master[],
    private readonly settings: Settings,
    private readonly context: RedlockContext,
  ) {
    const { clock, random, observer, witness = NO_WITNESS, advice } = context;
    const hasWaiters = (keys: readonly string[]): void => this.homeMasters.noteContention(keys);
    this.lines = new Lines(clock);
    this.masters = masters.map(
      (master) => new CircuitBreakerMaster(master, clock, settings.masterTimeout, observer, hasWaiters),
    );
    for (const master of this.masters) master.onReady(() => this.noteReady());
    // Timers stand still while the machine is suspended: end the locks whose validity ended in that time.
    clock.onResume?.(() => this.expireLeases());
    this.homeMasters = new HomeMasters(this.masters, clock);
    this.quorum = quorumOf(masters.length);
    this.keyspace = new Keyspace(settings.keyPrefix);
    this.permitBook = new PermitBook(this.keyspace, random);
    this.inspector = new Inspector({
      masters: this.masters,
      keyspace: this.keyspace,
      clock,
      timeout: settings.masterTimeout,
    });
    const listener = this.keyspace.channelOf(random.token());
    this.wallClock = new WallClockWatch({
      clock,
      leads: (milliseconds) => {
        for (const lease of this.held.members) lease.beginDoubt(milliseconds);
      },
      setBack: (milliseconds) => {
        for (const lease of this.held.members) lease.noteSetBack(milliseconds);
      },
    });
    const { wallClock } = this;
    this.leases = {
      settings,
      clock,
      random,
      observer,
      witness,
      wallClock,
      quorum: this.quorum,
      masters: masters.length,
      ended: (lease) => this.letGo(lease),
    };
    this.acquisitionContext = {
      masters: this.masters,
      homeMasters: this.homeMasters,
      keyspace: this.keyspace,
      settings,
      clock,
      random,
      tokens: new TokenSource(random, settings.instance),
      witness,
      advice,
      listener,
      releases: this.releases,
      leases: this.leases,
      lines: this.lines,
      ownHolderOf: (resource) => this.ownHolderOf(resource),
      standstill: this.standstill,
      notified: (master, key) => this.wake(master, key),
    };
  }

  // Resolves when each master has connected or failed to do so once.
  async open(): Promise<void> {
    await Promise.all(this.masters.map((master) => master.connect()));
  }

  // Resolves when a quorum can vote, with the problems of the other masters. Rejects if none can after `timeout`
  // milliseconds, at once if waiting cannot help, or if a server cannot be a master.
  async connect(timeout: number): Promise<readonly MasterReport[]> {
    const { masters, context } = this;
    const connecting = connectMasters({ masters, clock: context.clock, timeout, advice: context.advice });
    // A server that cannot be a master is reported first: an unavailable quorum is only its consequence.
    await connecting.catch(() => undefined);
    for (const { name, fault } of this.masters.map((master) => ({ name: master.name, ...master.identity() }))) {
      if (fault !== undefined) throw new RedlockConfigError('masters', name, `must be an independent server: ${fault}`);
    }
    return connecting;
  }

  // As far as they are known: see `MasterIdentity.run`.
  get servers(): readonly string[] {
    return this.masters.flatMap((master) => master.identity().run ?? []);
  }

  // Each time a master can take requests, or its votes begin to count.
  onReady(listener: () => void): void {
    for (const master of this.masters) master.onReady(listener);
  }

  // With a key that no lock uses, so that an answer, or a missing one, shows in the status.
  checkMasters(): void {
    const request = { op: 'probe', keys: [this.keyspace.probe] } as const;
    for (const master of this.masters) master.ask(request, () => undefined);
  }

  // Without contacting the masters.
  status(): RedlockStatus {
    return summarize(
      this.settings.instance,
      this.masters.map((master) => master.status()),
    );
  }

  ownHeld(limit: number): OwnLocks {
    return firstLocks(this.held.members, limit, ({ resources, acquiredAt, isShared, slot }) => ({
      resources,
      since: acquiredAt.wall,
      ...(isShared && { mode: 'shared' }),
      ...(slot !== undefined && { slot }),
    }));
  }

  ownWaiting(limit: number): OwnLocks {
    return firstLocks(this.waiting.members, limit, ({ resources, since, call }) => ({
      resources,
      since: since.wall,
      ...(call.isShared && { mode: 'shared' }),
      ...(call.permits !== undefined && { permits: call.permits }),
    }));
  }

  // Rejects with a `LockError`, or with the reason of the signal. The lock is held when the promise resolves.
  acquire(
    resources: readonly string[],
    call: CallSettings,
    onHeld: OnHeld = 'fail',
    held?: HeldByChain,
  ): Promise<Lock> {
    return this.start(resources, call, { onHeld, begin: itself, isAwaited: true, held });
  }

  // Begins work in the same turn in which the lock is seen to be held. A lock that has ended before its work could
  // begin is released, and acquired anew while the budget lasts.
  async start<T>(resources: readonly string[], call: CallSettings, options: Start<T>): Promise<T> {
    const { onHeld, begin, isAwaited, held } = options;
    call.signal?.throwIfAborted();
    if (this.stopped) throw new LockServiceStoppedError(resources);
    const wanted = this.wantedBy(resources, call);
    const { clock } = this.context;
    let recorder = this.recorderOf(resources, call, onHeld);
    const waiter = new Waiter(clock, resources, call, held);
    if (this.isStopped) waiter.stop(new LockServiceStoppedError(resources));
    // An acquisition that does not wait makes its single attempt without queueing behind those that do.
    const { queues, capacity, permits } = wanted;
    const entry = call.wait > 0 || this.queue.isEmpty(queues) ? this.queue.join(queues, waiter, capacity) : undefined;
    this.waiting.add(waiter);
    let acquisition = new Acquisition(this.acquisitionContext, { waiter, entry, permits });
    let lease: Lease;
    let attempts = 0;
    try {
      for (;;) {
        const leasedKeys = await acquisition.run();
        const { call: granted, passed } = acquisition;
        lease = this.hold({ resources, call: granted, leasedKeys, tenure: passed, entry });
        let isReported = false;
        for (;;) {
          if (isAwaited) await this.ownTurn(); // @mutant work-begun-among-other-reactions
          if (waiter.isStopped) void lease.release();
          waiter.check();
          if (recorder && !isReported && lease.isHeld) {
            isReported = true;
            recorder.granted(attempts + acquisition.attempts, waiter.paused);
          }
          const doubt = lease.begin(recorder) ? undefined : lease.pendingDoubt;
          if (!doubt) break;
          await waiter.unlessOver(doubt, true);
        }
        if (lease.isUsed) break;
        attempts += acquisition.attempts;
        if (isReported) {
          // The observers took longer than the lock lasted.
          recorder?.ended(undefined);
          recorder = this.recorderOf(resources, call, onHeld);
          waiter.paused = 0;
          attempts = 0;
        }
        entry?.waitAgain(waiter);
        const { permits: others } = this.wantedBy(resources, call);
        const again = { waiter, entry, permits: others, isRepeated: true };
        acquisition = new Acquisition(this.acquisitionContext, again);
      }
    } catch (reason) {
      const error =
        isStopped(reason) && acquisition.isHeldByOther ? new LockServiceStoppedError(resources, true) : reason;
      recorder?.failed(error, attempts + acquisition.attempts, waiter.paused);
      if (waiter.blamed !== undefined || isNotAcquired(error)) this.noteContention(waiter);
      entry?.leave();
      throw error;
    } finally {
      this.waiting.remove(waiter);
      waiter.end();
      this.noneWaits.check();
      this.idle.check();
    }
    if (waiter.blamed !== undefined) this.noteContention(waiter);
    return begin(new Lock(lease));
  }

  private noteContention({ resources, call, blamed }: Waiter): void {
    if (call.listener === undefined) this.contention.add(resources, blamed);
  }

  private recorderOf(
    resources: readonly string[],
    call: CallSettings,
    onHeld: OnHeld,
  ): AcquisitionRecorder | undefined {
    const { observer, clock } = this.context;
    const listener = call.listener ?? observer.acquiring?.(resources, onHeld, kindOf(call));
    return listener && new AcquisitionRecorder(listener, clock);
  }

  // Resolves when nothing else is left to react to in this turn of the event loop.
  private ownTurn(): Promise<void> {
    return new Promise((resolve) => this.context.clock.afterTurn(resolve));
  }

  private wantedBy(resources: readonly string[], { isShared, permits }: CallSettings): Wanted {
    if (permits === undefined) return { queues: resources, capacity: isShared ? SHARED : undefined };
    checkPermits(resources, permits);
    const [resource = ''] = resources;
    return {
      queues: [queueOfPermits(resource)],
      capacity: { isShared: false, limit: permits },
      permits: new PermitChoice(this.permitBook, resource, permits),
    };
  }

  probe(): Promise<RedlockStatus> {
    const { settings, context } = this;
    return probeMasters(this.masters, {
      key: this.keyspace.probe,
      clock: context.clock,
      timeout: settings.masterTimeout,
      status: () => this.status(),
    });
  }

  // So many milliseconds count for all locks, also for those that are granted or passed on and not held yet.
  noteStandstill(milliseconds: number): void {
    this.standstill.total += Math.ceil(milliseconds);
    for (const master of this.masters) master.noteStandstill();
    for (const lease of this.held.members) lease.noteStandstill(milliseconds);
    this.expireLeases();
  }

  get clock(): Clock {
    return this.context.clock;
  }

  get isStopped(): boolean {
    return this.stopped;
  }

  // Held locks are kept.
  stop(): void {
    this.stopped = true;
    for (const waiter of this.waiting.members) waiter.stop(new LockServiceStoppedError(waiter.resources));
  }

  // Waits at most `timeout` milliseconds until all locks are released and no acquisition is under way. Locks that are
  // still held after that are lost with the cause `shutdown`.
  async drain(timeout: number): Promise<void> {
    if (timeout > 0) await this.idle.metWithin(timeout, this.context.clock);
    this.loseAll();
  }

  // Acquisitions end at once, and all releases are given `masterTimeout` to be answered by a quorum. Then each master
  // closes, within a time of its own.
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    this.stop();
    // A lock that was just granted or passed on belongs to a call that is about to notice that it was stopped.
    await this.noneWaits.met();
    this.loseAll();
    await this.releases.settled();
    for (const master of this.masters) master.listen(this.acquisitionContext.listener, undefined);
    await Promise.all(this.masters.map((master) => master.close()));
  }

  private loseAll(): void {
    for (const lease of this.held.members) lease.lose('shutdown');
  }

  private hold(acquired: AcquiredKeys): Lease {
    acquired.entry?.becomeHolder();
    if (this.held.isEmpty) this.wallClock.restart();
    const lease = new Lease(acquired, this.leases);
    this.held.add(lease);
    if (!lease.isShared && lease.slot === undefined) this.lines.note(lease.resources, this.settings.instance);
    return lease;
  }

  private letGo(lease: Lease): void {
    const { entry, resources, slot } = lease;
    this.held.remove(lease);
    if (slot === undefined) this.lines.note(resources, undefined);
    const [resource = ''] = resources;
    if (slot !== undefined && !lease.isPassedOn) this.permitBook.free(resource, slot, true);
    // A call whose lock ended before it was used keeps its place.
    if (entry) {
      if (lease.isUsed) entry.leave();
    } else this.queue.wakeFirst(queuesOf(lease));
    this.idle.check();
  }

  private ownHolderOf(resource: string): string | undefined {
    for (let lease = this.held.first; lease; lease = lease.after) {
      const isNamed = !lease.isShared && lease.slot === undefined && lease.resources.includes(resource);
      if (isNamed) return this.settings.instance;
    }
    return undefined; // @mutant a-first-attempt-counts-as-holding
  }

  // Without a key: notifications may have been lost.
  private wake(master: CircuitBreakerMaster, key: string | undefined): void {
    const { homeMasters, keyspace, queue, acquisitionContext } = this;
    if (key === undefined) {
      homeMasters.noteLostNotifications(master);
      queue.wakeAll();
      return;
    }
    homeMasters.noteNotification(master);
    const { resource, slot } = keyspace.targetOf(key);
    // Protocol 11.11
    if (queue.notify(slot === undefined ? resource : queueOfPermits(resource), slot)) return;
    // The waiter has given up in the meantime: it is the turn of the next process.
    const { keys, queues } = keyspace.namesOfTarget({ resource, slot });
    const request = { op: 'leave', keys, queues, waiter: acquisitionContext.listener } as const;
    // It is not known for which of the two this process was next.
    for (const isShared of [false, true]) master.ask({ ...request, isShared }, () => undefined);
  }

  private expireLeases(): void {
    for (const lease of this.held.members) lease.noteTime();
  }

  private noteReady(): void {
    this.excludeTwins();
    this.queue.wakeAll();
  }

  // Each server has one vote, even if it is configured under several addresses.
  // Protocol 8.10
  private excludeTwins(): void {
    const known = this.masters.map((master) => (master.isConnected ? master.identity() : {}));
    this.masters.forEach((master, index) => {
      const own = known[index] ?? {};
      const twin = this.masters[known.findIndex((one, i) => i < index && areOfOneServer(one, own))];
      master.exclude(twin && `it is the same server as ${twin.name}`);
    });
  }
}

// Where only one of them may ask for the run, the data shows it.
function areOfOneServer(one: MasterIdentity, other: MasterIdentity): boolean {
  if (one.run === undefined || other.run === undefined) return false;
  return one.run === other.run || one.run === other.data || one.data === other.run;
}

function kindOf({ isShared, permits }: CallSettings): AcquisitionKind {
  if (permits !== undefined) return 'permit';
  return isShared ? 'shared' : 'exclusive';
}
