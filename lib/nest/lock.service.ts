import type { Duration } from '../settings/duration.js';
import { LockNotAcquiredError } from '../waiting/lock-not-acquired.error.js';
import { LockReentryError } from '../locks/lock-reentry.error.js';
import { RedlockConfigError } from '../settings/config.error.js';
import type { Lock } from '../locks/lock.js';
import { type LockObserver, ObserverHub, type OnHeld } from '../operate/observer.js';
import type { HeldLock, Inspector, LockInspection, OwnLocks, PermitInspection } from '../operate/inspector.js';
import { checkOptionNames, readOptions, type Table } from '../settings/table.js';
import type { LockManager } from '../locks/lock-manager.js';
import { FixedNames, resolveResources } from '../settings/resources.js';
import type { AcquireOptions } from '../settings/options.js';
import {
  ACQUIRE_OPTIONS,
  type CallSettings,
  permits as parsePermits,
  resolveCall,
  type Settings,
  warningOfTtl,
} from '../settings/settings.js';
import type { StateSnapshot } from '../fencing/lock-state.js';
import type { RedlockStatus } from '../operate/status.js';
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
/** Work that runs under a lock. */
export type LockedWork<T> = (lock: Lock) => T | PromiseLike<T>;

export interface WorkSettings {
  readonly call: CallSettings;
  // The work may run inside a lock that its call chain has: only if this is asked for, because a queue may have started it
  // in the call chain of another caller.
  // Protocol 11.9
  readonly mayJoin: boolean;
}

const refuseLoose = (returned: unknown): void =>
  void refuseStream('withLock', returned, ': await it inside of the work, or use LockInterceptor on the handler');

interface BegunWork<T> {
  readonly scope: LockScope;
  readonly returned: T | PromiseLike<T>;
}

interface LockedRun<T> {
  readonly work: LockedWork<T>;
  // May refuse what the work returns, a promise and its result alike, by throwing.
  readonly check?: (returned: unknown) => void;
  // What a refusal means to the caller, for observers.
  readonly onHeld?: OnHeld | undefined;
  // The decorated method, for the errors of other calls.
  readonly caller?: string | undefined;
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
  private readonly warned = new Set<string>();
  // The call of the last ttl that was given alone, or left out: a program gives few different ones.
  private last: { readonly ttl: Duration | undefined; readonly call: CallSettings } | undefined;

  /**
   * The services of applications that lock the same keys, one of which may stand in for another; absent outside of an
   * application.
   * @internal
   */
  standIns: Set<LockService> | undefined;

  /** @internal */
  constructor(
    // Asked for each acquisition.
    private readonly redlock: () => LockManager,
    private readonly settings: Settings,
    private readonly warn: (message: string) => void = () => undefined,
    private readonly hub: ObserverHub = new ObserverHub(),
    /** @internal `false` with `enabled: false`: no acquisition is ever refused. */
    readonly excludes: boolean = true,
    /** @internal Each as it is known to other services. */
    readonly masters: readonly unknown[] = [],
  ) {
    if (typeof (redlock as unknown) !== 'function') {
      const requirement =
        'is provided by RedlockModule.forRoot(...): import that, and neither list the class nor create it';
      throw new RedlockConfigError('LockService', redlock, requirement);
    }
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
   * @throws {LockServiceStoppedError} the application is shutting down
   * @throws {RedlockConfigError} an argument is invalid
   * @throws the reason of `options.signal`, if it aborts during the wait
   */
  acquire(resource: LockResource, options?: Duration | AcquireOptions): Promise<Lock> {
    return this.take(resource, options, 'fail');
  }

  /**
   * Like {@link acquire}, but resolves to `null` if another holder keeps the resource until `wait` ends. Here, `wait`
   * defaults to `0`, which is one attempt.
   *
   * @throws {QuorumUnavailableError} too few masters vote: an outage says nothing about the resource
   * @throws all other errors of {@link acquire}
   */
  async tryAcquire(resource: LockResource, options?: Duration | AcquireOptions): Promise<Lock | null> {
    const given = optionsOf<AcquireOptions>(options);
    checkOptionNames('options', given, ACQUIRE_OPTIONS);
    try {
      return await this.take(resource, given.wait === undefined ? { ...given, wait: 0 } : given, 'skip');
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
   * The locks and permits that this process holds now, the oldest first, those of decorators, interceptors, jobs and leaders
   * included. Asks no master. For diagnosis: a decision that depends on a lock needs its handle.
   */
  held(): readonly HeldLock[] {
    return this.excludes ? this.redlock().held : [];
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
    return this.redlock().masters.status();
  }

  /**
   * Like {@link status}, but makes the masters write: this measures their latencies and detects masters that hang or
   * refuse every write. Takes as long as the slowest master, at most a second, or the module's `masterTimeout` if that is
   * longer. A master that leaves it unanswered, and answers calls meanwhile, keeps its state.
   */
  probe(): Promise<RedlockStatus> {
    return this.redlock().masters.probe();
  }

  /**
   * What operators see of locks and permits, and their forced release. The tokens of holders are secrets.
   * @internal
   */
  get operator(): Inspector {
    return this.redlock().inspector;
  }

  /**
   * The locks that this process holds and those that it is acquiring, at most `most` of each; none if nothing is locked.
   * @internal
   */
  ownLocks(most: number): { readonly held: OwnLocks; readonly waiting: OwnLocks } {
    if (!this.excludes) return { held: { count: 0, locks: [] }, waiting: { count: 0, locks: [] } };
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
    const { clock, masters } = this.redlock();
    return { clock, servers: masters.servers, settings: this.settings, observer: this.hub.observer };
  }

  /** @internal */
  get isStopped(): boolean {
    return this.redlock().isStopped;
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
    caller?: string,
  ): Promise<LockScope> {
    const settings = this.workSettings(options);
    for (let outer = this.join(resources, settings); outer; outer = this.join(resources, settings)) {
      if (outer.lock.check()) return outer;
      void outer.end();
    }
    const lock = await this.redlock().acquire(resources, settings.call, { onHeld, isNested: this.isNested, caller });
    return LockScope.of(lock, this.context);
  }

  /**
   * Acquires a lock with settings that no option gives. It belongs to no call chain before work runs in its scope.
   * @internal
   */
  async holdWith(resource: string, call: CallSettings): Promise<LockScope> {
    return LockScope.of(
      await this.redlock().acquire([resource], call, { onHeld: 'skip', isNested: !this.excludes }),
      this.context,
    );
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
    return { call, mayJoin: WITH_LOCK_OPTIONS.reentrant('reentrant', given.reentrant) };
  }

  /**
   * Runs work under a lock. The error of the work comes first, unchanged and at once. One function, because each promise
   * between the caller and the work costs time.
   * @internal
   */
  async runLocked<T>(
    resources: readonly string[],
    settings: WorkSettings,
    { work, check, onHeld = 'fail', otherwise, caller }: LockedRun<T>,
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
      for (let outer = this.join(resources, settings); outer; outer = this.join(resources, settings)) {
        // Work inside a lock would otherwise begin in the call, and nested calls fill the stack.
        await DONE;
        if (outer.lock.check()) {
          begun = begin(outer);
          break;
        }
        void outer.end();
      }
      begun ??= await this.redlock().start(resources, settings.call, {
        onHeld,
        isAwaited: false,
        isNested: this.isNested,
        caller,
        begin: (lock) => begin(LockScope.of(lock, this.context)),
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
    // The masters may have told at the release that another holder may have had the lock.
    // Protocol 7.6
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
  check(
    where: string,
    options: LockedMethodOptions | LockInterceptorOptions,
    table: Table = METHOD_OPTIONS,
  ): CallSettings {
    readOptions(where, options, table);
    const call = resolveCall(this.settings, options, { where });
    if (options.ttl !== undefined) this.warnOfTtl(call.ttl, `${where}: `);
    return call;
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

  private join(resources: readonly string[], { call, mayJoin }: WorkSettings): LockScope | undefined {
    if (!this.context.innermost) return undefined;
    if (mayJoin) {
      const outer = this.heldInChain(call, (lock) => resources.every((resource) => lock.resources.includes(resource)));
      if (outer && (call.isShared || outer.lock.mode === 'exclusive')) return outer.join();
    }
    this.refuseReentry(resources, call, mayJoin);
    return undefined;
  }

  private take(resource: LockResource, options: Duration | AcquireOptions | undefined, onHeld: OnHeld): Promise<Lock> {
    return rejectOnThrow(() => {
      const resources = resolveResources('resource', resource);
      const call = this.callOf(options);
      if (this.context.innermost) this.refuseReentry(resources, call);
      return this.redlock().acquire(resources, call, { onHeld, isNested: this.isNested });
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

  /**
   * Warns of a ttl that may have been meant in seconds, once: each call of a program has the same mistake.
   *
   * @param ttl in milliseconds
   * @internal
   */
  warnOfTtl(ttl: number, where = ''): void {
    const warning = warningOfTtl(ttl);
    if (warning === undefined || this.warned.has(where + warning)) return;
    this.warned.add(where + warning);
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
    throw new LockReentryError(resources, lock.resources, problem, lock.caller);
  }

  // Whether it waits for no other call of this process. Not if all locks of its call chain have ended: then no call waits for
  // it.
  private get isNested(): boolean {
    return !this.excludes || this.context.find(({ lock }) => lock.isHeld) !== undefined;
  }

  // Permits of a name and a lock of the same name do not exclude each other.
  private heldInChain({ permits }: CallSettings, condition: (lock: Lock) => boolean): LockScope | undefined {
    const isPermit = permits !== undefined;
    return this.context.find(({ lock }) => (lock.slot !== undefined) === isPermit && condition(lock) && lock.isHeld);
  }
}

function singleResource(resource: string): string {
  const [name, ...others] = resolveResources('resource', resource);
  if (name !== undefined && others.length === 0) return name;
  throw new RedlockConfigError('resource', resource, 'must be one non-empty string');
}
