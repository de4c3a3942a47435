import { Acquisition, type AcquisitionContext } from './acquisition.js';
import type { Clock } from './clock.js';
import { connectMasters } from './connect.js';
import { LockServiceStoppedError, type MasterReport, RedlockConfigError } from './errors.js';
import { Gates } from './gates.js';
import { type Inspection, summarize } from './inspection.js';
import { Naming } from './key-names.js';
import { Lease, type LeaseContext } from './lease.js';
import { LinkedList } from './linked-list.js';
import { Lock } from './lock.js';
import type { Master } from './master.interface.js';
import type { Observer, OnHeld } from './observer.js';
import { probe } from './probe.js';
import { askAll, quorumOf } from './quorum.js';
import type { Random } from './random.js';
import { type CallSettings, ownName, type Settings } from './settings.js';
import { type Status, statusOf } from './status.js';
import type { Holding } from './holding.interface.js';
import { type Place, WaitQueue } from './wait-queue.js';
import { Waiter } from './waiter.js';
import { Watch } from './watch.js';
import { WatchedMaster } from './watched-master.js';
import { NO_WITNESS, type Witness } from './witness.interface.js';

export type { Inspection } from './inspection.js';

/** What surrounds the algorithm. */
export interface Surroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
  /** Speaks for the locks of this process to masters that have lost their data. */
  readonly witness?: Witness | undefined;
}

/**
 * Locks over N independent masters.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class Redlock {
  private readonly masters: readonly WatchedMaster[];
  private readonly quorum: number;
  private readonly gates: Gates;
  private readonly context: AcquisitionContext;
  private readonly naming: Naming;
  private readonly queue = new WaitQueue();
  private readonly waiting = new LinkedList<{ readonly waiter: Waiter; readonly resources: readonly string[] }>();
  private readonly held = new LinkedList<Lease>();
  private readonly leases: LeaseContext;
  /** Releases that have not been answered. */
  private releasing = 0;
  private released: (() => void) | undefined;
  private stopped = false;
  private idle: (() => void) | undefined;

  constructor(
    masters: readonly Master[],
    private readonly settings: Settings,
    private readonly surroundings: Surroundings,
  ) {
    const { clock, random, observer, witness = NO_WITNESS } = surroundings;
    const crowded = (keys: readonly string[]): void => this.gates.noteCrowd(keys);
    this.masters = masters.map((master) => new WatchedMaster(master, clock, settings.masterTimeout, observer, crowded));
    for (const master of this.masters) master.onReady(() => this.noteReady());
    // A timer stands still together with its clock: what ended meanwhile is noticed now.
    clock.onResume?.(() => this.expireLeases());
    this.gates = new Gates(this.masters, clock);
    this.quorum = quorumOf(masters.length);
    this.naming = new Naming(settings);
    this.context = {
      masters: this.masters,
      gates: this.gates,
      settings,
      clock,
      random,
      witness,
      listener: ownName(settings, `wake:${random.token()}`),
      releasing: (released) => this.track(released),
      woken: (master, key) => this.wake(master, key),
    };
    this.leases = {
      ...{ clock, random, observer, witness, quorum: this.quorum, masters: masters.length },
      ended: (lease, released) => this.letGo(lease, released),
    };
  }

  /** Opens the connections and does not wait for them. */
  open(): void {
    for (const master of this.masters) void master.connect();
  }

  /**
   * Opens the connections. Resolves when a quorum can vote, with what is wrong with the other masters.
   *
   * @throws {QuorumUnavailableError} if a quorum cannot be reached within `timeout` milliseconds
   * @throws {RedlockConfigError} if one of them cannot be a master: a replica, a cluster node, the same server twice
   */
  async connect(timeout: number): Promise<readonly MasterReport[]> {
    const connecting = connectMasters(this.masters, this.surroundings.clock, timeout);
    // Whoever gave a server that cannot be a master is told that, and not what follows from it.
    await connecting.catch(() => undefined);
    for (const { name, fault } of this.masters.map((master) => ({ name: master.name, ...master.identity() }))) {
      if (fault !== undefined) throw new RedlockConfigError('masters', name, `must be an independent server: ${fault}`);
    }
    return connecting;
  }

  /** What is known of the masters, without asking them. */
  status(): Status {
    return statusOf(this.masters);
  }

  /**
   * Takes all resources together, waiting for them within the budget.
   *
   * @param onHeld what a refusal is to whoever asks, for observers
   * @throws {LockNotAcquiredError} somebody else held a resource until the budget had ended
   * @throws {QuorumUnavailableError} too few masters could vote until the budget had ended
   * @throws {LockServiceStoppedError} `stop` was called
   * @throws the reason of the signal, when it aborts
   */
  async acquire(resources: readonly string[], call: CallSettings, onHeld: OnHeld = 'fail'): Promise<Lock> {
    call.signal?.throwIfAborted();
    if (this.stopped) throw new LockServiceStoppedError(resources);
    const { clock, observer } = this.surroundings;
    const watch = Watch.begin(observer, clock, resources, onHeld);
    const waiter = new Waiter(clock, call.wait, call.signal);
    if (watch) waiter.paused = 0;
    // Whoever does not wait makes its one attempt past those who do.
    const place = call.wait > 0 || this.queue.isEmpty(resources) ? this.queue.join(resources, waiter) : undefined;
    const waiting = this.waiting.add({ waiter, resources });
    const acquisition = new Acquisition(this.context, resources, this.naming.namesOf(resources), call, waiter, place);
    try {
      const tenure = await acquisition.run();
      watch?.granted(acquisition.attempts, waiter.paused);
      return this.hold(resources, acquisition.call, tenure, place, watch);
    } catch (error) {
      watch?.failed(error, acquisition.attempts, waiter.paused);
      place?.leave();
      throw error;
    } finally {
      waiting.leave();
      waiter.end();
      this.tellIfIdle();
    }
  }

  /** Asks all masters about a resource. */
  async inspect(resource: string): Promise<Inspection> {
    const { clock } = this.surroundings;
    const request = { op: 'inspect', keys: [this.naming.keyOf(resource)] } as const;
    const masters = await askAll(this.masters, request, clock, this.settings.masterTimeout);
    return summarize(resource, masters);
  }

  /** Lets all masters write a key of our own, and tells how they are doing. */
  probe(): Promise<Status> {
    const { settings, surroundings } = this;
    return probe(this.masters, ownName(settings, 'probe'), surroundings.clock, settings.masterTimeout);
  }

  /** Lets all locks that are held end earlier by so many milliseconds, since the clock of this process stood still. */
  shorten(milliseconds: number): void {
    for (const lease of this.held.values) lease.shorten(milliseconds);
  }

  /** Refuses new acquisitions from now on, and ends those that wait. Locks that are held are kept. */
  stop(): void {
    this.stopped = true;
    for (const { waiter, resources } of this.waiting.values) waiter.stop(new LockServiceStoppedError(resources));
  }

  /**
   * Waits until all locks have been released and nobody asks for one any more, at most `timeout` milliseconds; then
   * takes away what is left.
   */
  async drain(timeout: number): Promise<void> {
    if (!this.isIdle) {
      await new Promise<void>((resolve) => {
        const timer = this.surroundings.clock.schedule(timeout, resolve);
        this.idle = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    for (const lease of this.held.values) lease.lose('shutdown');
  }

  /** Closes the connections. Releases under way get `masterTimeout` to arrive. */
  async close(): Promise<void> {
    if (this.releasing > 0) await new Promise<void>((resolve) => (this.released = resolve));
    for (const master of this.masters) master.listen(this.context.listener, undefined);
    await Promise.all(this.masters.map((master) => master.close()));
  }

  private hold(
    resources: readonly string[],
    call: CallSettings,
    tenure: Holding,
    place: Place | undefined,
    watch: Watch | undefined,
  ): Lock {
    place?.hold();
    const lease = new Lease(resources, tenure, call, this.leases, watch, place);
    lease.member = this.held.add(lease);
    return new Lock(lease, this.settings);
  }

  private letGo({ member, place, resources }: Lease, released: Promise<void>): void {
    member?.leave();
    this.track(released);
    if (place) place.leave();
    else this.queue.wakeFirst(resources);
    this.tellIfIdle();
  }

  private get isIdle(): boolean {
    return this.held.isEmpty && this.waiting.isEmpty;
  }

  private tellIfIdle(): void {
    if (this.isIdle) this.idle?.();
  }

  /** Remembers a release until it has been answered. */
  private track(released: Promise<void>): void {
    this.releasing++;
    void released.then(this.endRelease);
  }

  private readonly endRelease = (): void => {
    if (--this.releasing === 0) this.released?.();
  };

  private expireLeases(): void {
    for (const lease of this.held.values) lease.noteTime();
  }

  /** A master can be asked again, or its votes count from now on. */
  private noteReady(): void {
    this.excludeTwins();
    this.queue.wakeAll();
  }

  /** One server has one vote, whatever the number of addresses under which it is known. */
  private excludeTwins(): void {
    const runs = this.masters.map((master) => (master.isConnected ? master.identity().run : undefined));
    this.masters.forEach((master, index) => {
      const run = runs[index];
      const first = run === undefined ? index : runs.indexOf(run);
      const twin = first === index ? undefined : this.masters[first];
      master.exclude(twin && `it is the same server as ${twin.name}`);
    });
  }

  /** A master says that this process is next, or that it may have said so unheard. */
  private wake(master: WatchedMaster, key: string | undefined): void {
    if (key === undefined) {
      this.gates.noteSilence(master);
      this.queue.wakeAll();
      return;
    }
    this.gates.noteCall(master);
    const resource = this.naming.resourceOf(key);
    if (this.queue.call(resource)) return;
    // Whoever waited has given up meanwhile: the next one's turn.
    const { keys, queues } = this.naming.namesOf([resource]);
    master.ask({ op: 'leave', keys, queues, waiter: this.context.listener }, () => undefined);
  }
}
