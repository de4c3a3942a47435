import type { Clock } from '../../../lib/redlock/clock.js';
import type { LockLostError } from '../../../lib/redlock/errors.js';
import type { Lock } from '../../../lib/locks/lock.js';
import { type LockObserver, ObserverHub, type OnHeld } from '../../../lib/operate/observer.js';
import { TOKEN_LENGTH } from '../../../lib/redlock/holder.js';
import { LockManager } from '../../../lib/locks/lock-manager.js';
import { resolveResources } from '../../../lib/settings/resources.js';
import type { MasterRequest } from '../../../lib/masters/master.interface.js';
import type { AcquireOptions, RedlockOptions } from '../../../lib/settings/options.js';
import { resolveCall, resolveSettings } from '../../../lib/settings/settings.js';
import { type Behaviour, ScriptedMaster } from './scripted-master.js';
import { TestClock } from './test-clock.js';

export interface RigOptions extends RedlockOptions {
  masters?: number;
  /** An additional observer. */
  observer?: LockObserver;
  /** The clock of the process, if that of the masters is another one. */
  clockOf?: (masters: TestClock) => Clock;
}

export interface Request extends AcquireOptions {
  ttl?: number;
}

let tokens = 0;

/** One process with its locks, on masters that other rigs may share. */
export class Rig {
  readonly clock: TestClock;
  readonly masters: readonly ScriptedMaster[];
  readonly redlock: LockManager;
  readonly losses: LockLostError[] = [];
  readonly silences: string[] = [];
  /** The value of every random fraction. */
  fraction = 0.5;
  /** Errors that observers threw. */
  readonly faults: unknown[] = [];
  private readonly settings;
  private readonly own: LockObserver = {
    lockLost: (error) => this.losses.push(error),
    masterSilent: (name) => this.silences.push(name),
  };

  constructor({ masters = 3, observer, clockOf, ...options }: RigOptions = {}, shared?: Rig) {
    this.clock = shared?.clock ?? new TestClock();
    this.masters =
      shared?.masters ?? Array.from({ length: masters }, (_, i) => new ScriptedMaster(this.clock, `m${i + 1}`));
    // A round that times out ends long before the wait of any test does.
    const masterTimeout = Math.min(50, Number(options.ttl ?? Infinity) / 4);
    this.settings = resolveSettings({ masterTimeout, ...options });
    this.redlock = new LockManager(this.masters, this.settings, {
      clock: clockOf?.(this.clock) ?? this.clock,
      random: { token: () => `secret-${++tokens}`.padEnd(TOKEN_LENGTH, '-'), fraction: () => this.fraction },
      observer: new ObserverHub((error) => this.faults.push(error)).add(this.own, ...(observer ? [observer] : []))
        .observer,
    });
  }

  async acquire(resource: string | readonly string[], options: Request = {}, onHeld: OnHeld = 'fail'): Promise<Lock> {
    const call = resolveCall(this.settings, options);
    return this.redlock.acquire(resolveResources('resource', resource), call, { onHeld });
  }

  /** Acquires, and lets everything happen that takes no time. */
  async lock(resource: string | readonly string[], request: Request = {}): Promise<Lock> {
    const lock = this.acquire(resource, request);
    await this.clock.settle();
    return lock;
  }

  /** Sets the behaviour of the first `count` masters. */
  script(count: number, behaviour: Behaviour): void {
    for (const master of this.masters.slice(0, count)) master.behaviour = behaviour;
  }

  /** Sets the behaviour of all masters. */
  scriptAll(behaviour: Behaviour): void {
    this.script(this.masters.length, behaviour);
  }

  /** Another process on the same masters. */
  peer(options: Omit<RigOptions, 'masters'> = {}): Rig {
    return new Rig(options, this);
  }

  /** Sets the behaviour of one master after the other. */
  scriptEach(...behaviours: readonly Behaviour[]): void {
    behaviours.forEach((behaviour, i) => (this.masters[i]!.behaviour = behaviour));
  }

  /** Number of keys on each master. */
  get keys(): number[] {
    return this.masters.map(({ size }) => size);
  }

  /** Number of processes in the queues of each master. */
  get queued(): number[] {
    return this.masters.map(({ memory }) => memory.queued);
  }

  /** Number of requests of one kind to each master, since the last `forget`. */
  counts(op: MasterRequest['op']): number[] {
    return this.masters.map((master) => master.times(op).length);
  }

  forget(): void {
    for (const { asked } of this.masters) asked.length = 0;
  }

  /** Waits for a promise, and lets everything happen that takes no time. */
  async settle(promise?: Promise<unknown>): Promise<void> {
    await promise;
    await this.clock.settle();
  }

  /** Follows a promise without waiting for it. */
  follow<T>(promise: Promise<T>): Followed<T> {
    return new Followed(promise, this.clock);
  }

  /** Follows a promise, and lets everything happen that takes no time. */
  async outcomeOf<T>(promise: Promise<T>): Promise<Followed<T>> {
    const followed = this.follow(promise);
    await this.clock.settle();
    return followed;
  }

  /** Follows a promise while so many milliseconds pass. */
  async outcomeAfter<T>(milliseconds: number, promise: Promise<T>): Promise<Followed<T>> {
    const followed = this.follow(promise);
    await this.clock.advance(milliseconds);
    return followed;
  }
}

/** The outcome of a promise, and its time. */
export class Followed<T> {
  state: 'pending' | 'fulfilled' | 'rejected' = 'pending';
  value: T | undefined = undefined;
  reason: unknown = undefined;
  /** Milliseconds on the monotonic clock. */
  at: number | undefined;

  constructor(promise: Promise<T>, clock: TestClock) {
    promise.then(
      (value) => {
        this.state = 'fulfilled';
        this.value = value;
        this.at = clock.now;
      },
      (reason: unknown) => {
        this.state = 'rejected';
        this.reason = reason;
        this.at = clock.now;
      },
    );
  }
}
