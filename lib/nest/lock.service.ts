import type { Duration } from '../core/settings/duration.js';
import type { ResourceContention } from '../core/contention/contention.js';
import { queuesOf } from '../core/acquire/permits.js';
import type { HeldByChain } from '../core/acquire/waiter.js';
import { LockOrder } from '../core/contention/lock-order.js';
import { LockNotAcquiredError, LockOrderError, LockReentryError, RedlockConfigError } from '../core/errors.js';
import type { Lock } from '../core/lock.js';
import { type LockObserver, ObserverHub, type OnHeld } from '../core/observer.js';
import type { Inspector, LockInspection, OwnLocks, PermitInspection } from '../core/inspector.js';
import { checkOptionNames, readOptions, type Table } from '../core/settings/table.js';
import type { Redlock } from '../core/redlock.js';
import { FixedNames, resolveResources } from '../core/settings/resources.js';
import type { AcquireOptions } from '../core/settings/options.js';
import {
  ACQUIRE_OPTIONS,
  type CallSettings,
  permits as parsePermits,
  resolveCall,
  type Settings,
  warningOfTtl,
} from '../core/settings/settings.js';
import type { StateSnapshot } from '../core/state/state-register.js';
import type { RedlockStatus } from '../core/health/status.js';
import { LockContext, LockScope } from './lock-scope.js';
import { refuseStream } from './lockable-method.js';
import { rejectOnThrow } from './locked-stream.js';
import {
  type LockedMethodOptions,
  type LockInterceptorOptions,
  type LockResource,
  METHOD_OPTIONS,
  optionsOf,
  WITH_LOCK_OPTIONS,
  type WithLockOptions,
} from './lock-options.js';

// The property by which a lock service differs from a mock. A registered symbol also identifies a service of another
// copy of this package.
export const IS_LOCK_SERVICE = Symbol.for('nestjs-redlock:is-lock-service');

const DONE = Promise.resolve();
// Locks that a call chain holds: the order of deeper ones is not watched, because each call looks at all of them.
const MAX_DEPTH = 8;

/** Work that runs under a lock. */
export type LockedWork<T> = (lock: Lock) => T | PromiseLike<T>;

export interface WorkSettings {
  readonly call: CallSettings;
  // The work may run inside a lock that its call chain has.
  readonly mayJoin: boolean;
}

const refuseLoose = (returned: unknown): void =>
  void refuseStream('withLock', returned, ': await it inside of the work');

interface BegunWork<T> {
  readonly scope: LockScope;
  readonly returned: T | PromiseLike<T>;
}

interface LockedRun<T> {
  readonly work: LockedWork<T>;
  // The decorated method, for messages.
  readonly place?: string;
  // May refuse what the work returns, a promise and its result alike, by throwing.
  readonly check?: (returned: unknown) => void;
  // What a refusal means to the caller, for observers.
  readonly onHeld?: OnHeld | undefined;
  // For a call that does not run, because the lock was not acquired; default: its error.
  readonly otherwise?: ((error: unknown) => Promise<T>) | undefined;
}

/**
 * Distributed locks. Inject it into any provider.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class LockService {
  private readonly context = new LockContext();
  private readonly fixedNames = new FixedNames();
  private readonly order: LockOrder | undefined;
  // In milliseconds: those of which the log has warned.
  private readonly warned = new Set<number>();
  // The call of the last ttl that was given alone, or left out: a program gives few different ones.
  private last: { readonly ttl: Duration | undefined; readonly call: CallSettings } | undefined;

  /** @internal */
  constructor(
    // Asked for each acquisition.
    private readonly redlock: () => Redlock,
    private readonly settings: Settings,
    private readonly warn: (message: string) => void = () => undefined,
    private readonly hub: ObserverHub = new ObserverHub(),
    /** @internal `false` with `enabled: false`: no acquisition is ever refused. */
    readonly excludes: boolean = true,
  ) {
    if (typeof (redlock as unknown) !== 'function') {
      const requirement =
        'is provided by RedlockModule.forRoot(...): import that, and neither list the class nor create it';
      throw new RedlockConfigError('LockService', redlock, requirement);
    }
    if (settings.lockOrder !== 'off' && excludes) this.order = new LockOrder();
    // Not enumerable and not on the prototype: a mock copies neither the property nor its value.
    Object.defineProperty(this, IS_LOCK_SERVICE, { value: true });
  }

  /**
   * Acquires a lock. The caller releases it, preferably by `await using`. It is not extended without `extend: true`.
   *
   * The lock is held when the promise resolves: one that ended before that, because this process was blocked, is acquired
   * anew while `wait` lasts. Only code that runs at once after `await` can rely on that. Before work that begins later, such
   * as after `Promise.all`, look at `lock.isHeld` or pass `lock.signal`; `withLock` does so itself.
   *
   * @param resource what to lock; several resources are acquired together or not at all
   * @param options the ttl in milliseconds or as a string such as `'10s'`, or options; default: those of the module
   * @throws {LockNotAcquiredError} another holder keeps the resource until the waiting budget ends
   * @throws {QuorumUnavailableError} too few masters vote before the waiting budget ends, or this process was blocked until
   *   the lock had ended, and the budget, too
   * @throws {LockReentryError} the call chain already holds one of the resources
   * @throws {LockOrderError} with `lockOrder: 'error'`, if other call chains take these locks in another order
   * @throws {LockServiceStoppedError} the application is shutting down
   * @throws {RedlockConfigError} an argument is invalid
   * @throws the reason of `options.signal`, if it aborts during the wait
   */
  acquire(resource: LockResource, options?: Duration | AcquireOptions): Promise<Lock> {
    return this.take(resource, options, 'fail');
  }

  /**
   * Like {@link acquire}, but makes exactly one attempt, and resolves to `null` if another holder has the resource.
   *
   * @throws {QuorumUnavailableError} too few masters vote: an outage says nothing about the resource
   * @throws all other errors of {@link acquire}
   */
  async tryAcquire(resource: LockResource, options?: Duration | Omit<AcquireOptions, 'wait'>): Promise<Lock | null> {
    const given = optionsOf<AcquireOptions>(options);
    checkOptionNames('options', given, ACQUIRE_OPTIONS);
    try {
      return await this.take(resource, { ...given, wait: 0 }, 'skip');
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      this.noteSkip('tryAcquire', error);
      return null;
    }
  }

  /**
   * Runs work under a lock with the ttl and the options of the module: see the form with options.
   *
   * @param resource what to lock; several resources are acquired together or not at all
   * @param work receives the lock; pass its `signal` to everything that must stop when the lock is lost
   */
  withLock<T>(resource: LockResource, work: LockedWork<T>): Promise<T>;
  /**
   * Runs work under a lock, extends it while the work runs, and releases it afterwards. The work never begins under a lock
   * that has ended: it is acquired anew while `wait` lasts.
   *
   * @param resource what to lock; several resources are acquired together or not at all
   * @param options the ttl in milliseconds or as a string such as `'10s'`, or options; default: those of the module
   * @param work receives the lock; pass its `signal` to everything that must stop when the lock is lost
   * @returns the result of the work. An error of the work is rethrown unchanged.
   * @throws {LockLostError} the lock was lost while the work ran, even if the work returned a value
   * @throws all errors of {@link acquire}
   */
  withLock<T>(resource: LockResource, options: Duration | WithLockOptions | undefined, work: LockedWork<T>): Promise<T>;
  withLock<T>(
    resource: LockResource,
    options: Duration | WithLockOptions | undefined | LockedWork<T>,
    work?: LockedWork<T>,
  ): Promise<T> {
    return rejectOnThrow(() => {
      if (typeof options === 'function' && work === undefined) return this.withLock(resource, undefined, options);
      if (typeof resource === 'function' || typeof options === 'function') {
        const misplaced = typeof resource === 'function' ? resource : work;
        throw new RedlockConfigError('work', misplaced, 'must be the last argument: withLock(resource, options, work)');
      }
      const resources = resolveResources('resource', resource);
      if (typeof work !== 'function') {
        throw new RedlockConfigError('work', work, 'must be a function: withLock(resource, options, work)');
      }
      return this.runLocked(resources, this.workSettings(options), { work, check: refuseLoose });
    });
  }

  /**
   * The lock that the running call chain holds through `withLock`, `@WithLock` or `LockInterceptor`, at any depth below
   * them. A lock of {@link acquire} belongs to no call chain.
   *
   * @param resource looks for the lock on this resource; default: the innermost lock
   * @returns `undefined` if the call chain has no such lock; a lock that was lost meanwhile is still returned
   */
  current(resource?: string): Lock | undefined {
    return this.context.find(({ lock }) => resource === undefined || lock.resources.includes(resource))?.lock;
  }

  /**
   * Asks all masters whether a resource is held, and for how long. Advisory: the answer may be outdated when it
   * arrives. Takes as long as the slowest master, at most the module's `masterTimeout`. An outage is reported as
   * `unknown`, not as an error.
   *
   * @throws {RedlockConfigError} unless `resource` is a single resource
   */
  async inspect(resource: string): Promise<LockInspection> {
    return this.operator.inspect(singleResource(resource));
  }

  /**
   * Asks all masters which permits of a resource are held. Like {@link inspect}, it is advisory, and an outage is no error.
   *
   * @param permits their number, from 1 to 1,000, as the holders give it
   * @throws {RedlockConfigError} unless `resource` is a single resource, and for an invalid number
   */
  async inspectPermits(resource: string, permits: number): Promise<PermitInspection> {
    return this.operator.inspectPermits(singleResource(resource), parsePermits('permits', permits));
  }

  /**
   * Reads the state of a resource without its lock: see `lock.state`. For dashboards and histories. The value may be
   * replaced at any moment, so a decision to run needs the lock and `lock.state.get()`. Takes as long as the slowest
   * master, at most the module's `masterTimeout`.
   *
   * @throws {QuorumUnavailableError} too few masters answer
   * @throws {RedlockConfigError} unless `resource` is a single resource
   */
  async readState<T = unknown>(resource: string): Promise<StateSnapshot<T>> {
    return (await this.operator.readState(singleResource(resource))) as StateSnapshot<T>;
  }

  /**
   * The state of the masters and whether a quorum can vote, as far as this process knows without asking them. A master
   * that stopped answering is shown as `voting` until it has left several requests unanswered; {@link probe} asks the
   * masters.
   *
   * A `quarantined` master is reported with the reason, such as `it was restarted`, and the time after which its votes
   * count at the latest. New masters vote sooner: see `restartGuard`.
   */
  status(): RedlockStatus {
    return this.redlock().status();
  }

  /**
   * Like {@link status}, but makes the masters write: this measures their latencies and detects masters that hang or
   * refuse every write. Takes as long as the slowest master, at most the module's `masterTimeout`.
   */
  probe(): Promise<RedlockStatus> {
    return this.redlock().probe();
  }

  /**
   * The kinds of resources for which calls of this instance have waited, and for which holders: at most a hundred and
   * `other`, those that cost the most time first. Uncontended acquisitions are not counted, and cost nothing.
   *
   * ```ts
   * const [worst] = locks.contention(); // { pattern: 'order:*', waited: 41, milliseconds: { sum: 5130, ... }, ... }
   * ```
   *
   * @returns what this process has counted since it was started, without asking the masters
   * @see LockNotAcquiredError.holder, for one call
   */
  contention(): readonly ResourceContention[] {
    return this.redlock().contention.report;
  }

  /**
   * What operators see of locks and permits, and their forced release. The tokens of holders are secrets.
   * @internal
   */
  get operator(): Inspector {
    return this.redlock().inspector;
  }

  /**
   * The locks that this process holds and those that it is acquiring, at most `most` of each.
   * @internal
   */
  ownLocks(most: number): { readonly held: OwnLocks; readonly waiting: OwnLocks } {
    const redlock = this.redlock();
    return { held: redlock.ownHeld(most), waiting: redlock.ownWaiting(most) };
  }

  /**
   * Adds an observer, which receives the events from now on.
   * @internal
   */
  observe(observer: LockObserver): void {
    this.hub.precede(observer);
  }

  /**
   * What the parts of this package that build on locks share with them; the servers as far as they are known.
   * @internal
   */
  get environment() {
    const { clock, servers } = this.redlock();
    return { clock, servers, settings: this.settings, observer: this.hub.observer };
  }

  /**
   * Called after the application has shut down.
   * @internal
   */
  close(): void {
    this.context.close();
  }

  /**
   * Acquires a lock for work that is about to start, or joins the lock that the work may run inside.
   * @internal
   */
  async hold(
    resources: readonly string[],
    options: WithLockOptions,
    onHeld: OnHeld = 'fail',
    place?: string,
  ): Promise<LockScope> {
    const settings = this.workSettings(options);
    for (let outer = this.join(resources, settings, place); outer; outer = this.join(resources, settings, place)) {
      await outer.lock.pendingDoubt;
      if (outer.lock.isHeld) return outer;
      void outer.end();
    }
    const lock = await this.redlock().acquire(resources, settings.call, onHeld, this.heldByChain);
    return LockScope.of(lock, this.context, place);
  }

  /**
   * Acquires a lock with settings that no option gives. It belongs to no call chain before work runs in its scope.
   * @internal
   */
  async holdWith(resource: string, call: CallSettings): Promise<LockScope> {
    return LockScope.of(await this.redlock().acquire([resource], call, 'skip'), this.context);
  }

  /**
   * Resolves options for work that runs under a lock.
   *
   * @throws {RedlockConfigError} for an invalid option
   * @internal
   */
  workSettings(options: Duration | WithLockOptions | undefined): WorkSettings {
    const given = optionsOf<WithLockOptions>(options);
    if (given === options) checkOptionNames('options', given, WITH_LOCK_OPTIONS);
    const call = resolveCall(this.settings, given, { extend: true });
    if (given.ttl !== undefined) this.warnOfTtl(call.ttl);
    // Protocol 11.9
    // A shared lock inside of another lock would add nothing, and wait for an exclusive request that waits for the other.
    return { call, mayJoin: WITH_LOCK_OPTIONS.reentrant('reentrant', given.reentrant) || call.isShared };
  }

  /**
   * Runs work under a lock. The error of the work comes first, unchanged and at once. One function, because each promise
   * between the caller and the work costs time.
   * @internal
   */
  async runLocked<T>(
    resources: readonly string[],
    settings: WorkSettings,
    { work, place, check, onHeld = 'fail', otherwise }: LockedRun<T>,
  ): Promise<T> {
    const begin = (scope: LockScope): BegunWork<T> => {
      try {
        const returned = scope.run(() => work(scope.lock));
        check?.(returned);
        return { scope, returned };
      } catch (error) {
        return { scope, returned: Promise.reject(error) };
      }
    };
    let begun: BegunWork<T> | undefined;
    try {
      for (let outer = this.join(resources, settings, place); outer; outer = this.join(resources, settings, place)) {
        // Work inside a lock would otherwise begin in the call, and nested calls fill the stack.
        await (outer.lock.pendingDoubt ?? DONE);
        if (outer.lock.isHeld) {
          begun = begin(outer);
          break;
        }
        void outer.end();
      }
      begun ??= await this.redlock().start(resources, settings.call, {
        ...{ onHeld, isAwaited: false, held: this.heldByChain },
        begin: (lock) => begin(LockScope.of(lock, this.context, place)),
      });
    } catch (error) {
      if (otherwise) return otherwise(error);
      throw error;
    }
    const { scope, returned } = begun;
    let result: T;
    try {
      result = await returned;
      check?.(result);
      scope.throwIfLost();
    } catch (error) {
      void scope.end();
      throw error;
    }
    await scope.end();
    // Clocks may have disagreed until the masters answered.
    scope.throwIfLost();
    return result;
  }

  /**
   * Reports a call that does not run because another holder has the resource.
   * @internal
   */
  noteSkip(caller: string, error: LockNotAcquiredError): void {
    this.hub.observer.skipped?.(caller, error);
  }

  /**
   * Warns of what may be a mistake in the application.
   * @internal
   */
  noteMistake(warning: string): void {
    this.warn(warning);
  }

  /**
   * Checks options that are known before any call is made.
   *
   * @throws {RedlockConfigError} for an invalid option; the message names `where`
   * @internal
   */
  check(where: string, options: LockedMethodOptions | LockInterceptorOptions, table: Table = METHOD_OPTIONS): void {
    readOptions(where, options, table);
    const { ttl } = resolveCall(this.settings, options, { where });
    if (options.ttl !== undefined) this.warnOfTtl(ttl, `${where}: `);
  }

  /**
   * Checks the names that a method of this application locks, as far as they are known before any call.
   *
   * @throws {RedlockConfigError} if another method takes permits of a name that this one locks, or another number of them
   * @internal
   */
  checkNames(
    where: string,
    resources: readonly string[],
    { permits, mode }: LockInterceptorOptions | LockedMethodOptions,
  ): void {
    this.fixedNames.add(resources, { method: where, permits, isShared: mode === 'shared' });
  }

  /**
   * Warns of options with which ticks of a schedule are skipped, or run on each instance.
   *
   * @param period the shortest time between two ticks, in milliseconds; `undefined` if it is unknown
   * @internal
   */
  checkPeriod(where: string, options: LockedMethodOptions, period: number | undefined): void {
    if (period === undefined) return;
    const { wait, minHold } = resolveCall(this.settings, options);
    const isSkipped = options.onLocked === 'skip';
    if (minHold >= period) {
      this.warn(
        `${where}: minHold is ${minHold} ms, and its schedule is due every ${period} ms: the ticks in between are skipped. ` +
          'Give a minHold that is shorter than the period',
      );
    } else if (isSkipped && (options.wait === undefined ? 0 : wait) >= minHold) {
      this.warn(
        `${where}: a tick that has ended before the timer of another instance fires runs there, too. Use @LockedCron or ` +
          '@LockedInterval, or give a minHold that is longer than its wait',
      );
    } else if (!isSkipped && options.wait === undefined && wait > minHold) {
      this.warn(
        `${where}: a tick that ends within ${wait} ms runs on each instance, one after the other. Use @LockedCron ` +
          "or @LockedInterval, or give onLocked: 'skip' and a minHold, or a wait if this is what you want",
      );
    }
  }

  private join(resources: readonly string[], { call, mayJoin }: WorkSettings, place?: string): LockScope | undefined {
    if (!this.context.innermost) return undefined;
    if (mayJoin) {
      const outer = this.heldInChain(call, (lock) => resources.every((resource) => lock.resources.includes(resource)));
      if (outer && (call.isShared || outer.lock.mode === 'exclusive')) return outer.join();
    }
    this.refuseReentry(resources, call, mayJoin);
    this.noteOrder(resources, call, place);
    return undefined;
  }

  private take(resource: LockResource, options: Duration | AcquireOptions | undefined, onHeld: OnHeld): Promise<Lock> {
    return rejectOnThrow(() => {
      const resources = resolveResources('resource', resource);
      const call = this.callOf(options);
      if (this.context.innermost) {
        this.refuseReentry(resources, call);
        this.noteOrder(resources, call);
      }
      return this.redlock().acquire(resources, call, onHeld, this.heldByChain);
    });
  }

  private callOf(options: Duration | AcquireOptions | undefined): CallSettings {
    if (this.last && typeof options !== 'object' && options === this.last.ttl) return this.last.call;
    const given = optionsOf<AcquireOptions>(options);
    if (given === options) checkOptionNames('options', given, ACQUIRE_OPTIONS);
    const call = resolveCall(this.settings, given);
    if (given.ttl !== undefined) this.warnOfTtl(call.ttl);
    if (given !== options) this.last = { ttl: given.ttl, call };
    return call;
  }

  // Each call of a program has the same mistake.
  private warnOfTtl(ttl: number, where = ''): void {
    const warning = warningOfTtl(ttl);
    if (warning === undefined || (where === '' && this.warned.has(ttl))) return;
    this.warned.add(ttl);
    this.warn(where + warning);
  }

  private refuseReentry(resources: readonly string[], call: CallSettings, mayJoin = false): void {
    const held = this.heldInChain(call, (lock) => resources.some((resource) => lock.resources.includes(resource)));
    if (!held) return;
    const { lock } = held;
    // Protocol 11.9
    const isUpgrade = lock.mode === 'shared' && !call.isShared;
    const wouldWait = call.permits === undefined ? 'nested' : 'permit';
    const problem = isUpgrade ? 'upgrade' : mayJoin ? 'partial' : wouldWait;
    throw new LockReentryError(resources, lock.resources, problem);
  }

  private noteOrder(resources: readonly string[], call: CallSettings, place?: string): void {
    const { wait, isShared, permits, signal } = call;
    if (!this.order || wait === 0 || signal?.aborted) return;
    const scopes = this.context.all;
    // Joined scopes have one lock.
    const locks = new Map(scopes.filter(({ lock }) => lock.isKept).map((scope) => [scope.lock, scope]));
    if (locks.size === 0 || locks.size > MAX_DEPTH) return;
    const chain = [...locks].map(([lock, scope]) => ({
      ...{ resources: lock.resources, isShared: lock.mode === 'shared', isPermit: lock.slot !== undefined },
      ...{ place: scope.place, isSplit: scope.isSplitBeside(scopes) },
    }));
    const isRefused = this.settings.lockOrder === 'error';
    const wanted = { resources, isShared, isPermit: permits !== undefined, place };
    for (const cycle of this.order.note(chain, wanted, isRefused)) {
      if (isRefused) throw new LockOrderError(resources, cycle);
      this.warn(cycle);
    }
  }

  // Absent for a call that is not nested.
  private get heldByChain(): HeldByChain | undefined {
    if (!this.context.innermost) return undefined;
    const scopes = this.context.all;
    return () => scopes.flatMap(({ lock }) => (lock.isKept ? queuesOf(lock) : []));
  }

  // Permits of a name and a lock of the same name do not exclude each other.
  private heldInChain({ permits }: CallSettings, condition: (lock: Lock) => boolean): LockScope | undefined {
    const isPermit = permits !== undefined;
    return this.context.find(({ lock }) => (lock.slot !== undefined) === isPermit && condition(lock) && lock.isKept);
  }
}

function singleResource(resource: string): string {
  const [name, ...others] = resolveResources('resource', resource);
  if (name !== undefined && others.length === 0) return name;
  throw new RedlockConfigError('resource', resource, 'must be one non-empty string');
}
