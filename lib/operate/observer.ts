import type { LockLostError, MasterReport } from '../redlock/errors.js';
import type { LockNotAcquiredError } from '../waiting/lock-not-acquired.error.js';
import type { LockHolder } from '../redlock/holder.js';
import type { RedlockStatus } from './status.js';
import type { ElectionObserver } from './leadership.js';
import type { JobObserver } from './job-observer.js';
import type { MasterReply, MasterRequest } from '../masters/master.interface.js';
import type { LockMode } from '../settings/options.js';
import type { Clock } from '../redlock/clock.js';

/** A lock service, as its observers see it. */
export interface ObservedService {
  /** The `name` with which the module was registered; `default` without one. */
  readonly name: string;
  /** What is known about the masters now, without asking them. Cheap enough for every scrape of metrics. */
  readonly status: () => RedlockStatus;
}

/**
 * Receives events, for example to log or to count them. Called synchronously; what it throws, or rejects with, is logged.
 * What concerns a master or the service is reported in the asynchronous context of the application, not of the request that
 * has met it.
 */
export interface LockObserver {
  /**
   * A lock service was created. Called before all other events; the status is available afterwards. The returned
   * observer, if any, receives all further events of this service instead of this one, so that one observer can serve
   * several services.
   */
  started?(service: ObservedService): LockObserver | undefined;
  /** The lock service has closed its connections, or could not start. The last event. */
  stopped?(): void;
  /**
   * The first status after all masters had time to connect, at most `connectTimeout`. Called once; not called if the
   * boot fails.
   */
  firstStatus?(status: RedlockStatus): void;
  /**
   * An acquisition begins. Called in the asynchronous context of the caller. The returned observer, if any, receives
   * the further events of this acquisition.
   *
   * @param onHeld what a refusal means to the caller
   * @param kind what it asks for
   */
  acquiring?(resources: readonly string[], onHeld: OnHeld, kind: AcquisitionKind): AcquisitionObserver | undefined;
  /**
   * A call begins to wait, for another holder or for masters that can vote. Called once for each call that waits.
   *
   * @param holder the holder, as most masters answered; `undefined` if they named none or were not asked, because other
   *   calls of this process are before this one
   */
  waiting?(resources: readonly string[], holder: LockHolder | undefined): void;
  /**
   * A call that waits is woken, to try again or to give up. For debugging: it may be called often.
   *
   * @param cause why
   * @param master the master that notified this process or can be used again; `undefined` if another call of this process
   *   or the time is the cause
   */
  woken?(resources: readonly string[], cause: WakeCause, master: string | undefined): void;
  /** A lock was lost while its holder still relied on it. */
  lockLost?(error: LockLostError): void;
  /**
   * An extension has failed, and less than a third of the ttl is left. Called once for each lock, and again only after
   * an extension that succeeded.
   *
   * @param remaining milliseconds after which the lock is lost, unless an extension succeeds
   * @param answers what each master replied last
   */
  lockInDanger?(resources: readonly string[], remaining: number, answers: readonly MasterReport[]): void;
  /**
   * A call did not run because another holder has the resource, as `tryAcquire`, `onLocked: 'skip'`, a status or a
   * function for `onLocked` expect.
   *
   * @param caller `tryAcquire`, or the decorator or interceptor with its class and method
   */
  skipped?(caller: string, error: LockNotAcquiredError): void;
  /**
   * A master has answered, or was not asked because it is silent.
   *
   * @param milliseconds time since the request; `0` if the master was not asked
   */
  masterAnswered?(master: string, operation: MasterRequest['op'], answer: MasterReply, milliseconds: number): void;
  /** A master has left several requests unanswered. From now on, it is only probed. */
  masterSilent?(master: string): void;
  /** The votes of a master do not count for a while, because it may have lost locks. */
  masterQuarantined?(master: string, reason: string, milliseconds: number): void;
  /**
   * A master has lost its vote until it or its settings are changed: it is a replica, or a server that already has a
   * vote, or refuses the login of this process, or what locks need, such as every write.
   */
  masterRefused?(master: string, reason: string): void;
  /** The votes of a master that was quarantined or refused count again. */
  masterVotesAgain?(master: string): void;
  /** A master works, but its configuration can cost locks, or it refuses something, for lack of a permission. */
  masterAtRisk?(master: string, risk: string): void;
  /** A risk that `masterAtRisk` has reported is over: its user has the permission now. */
  masterRiskEnded?(master: string, risk: string): void;
  /** The connection to a master was lost. It is reopened until that succeeds. */
  masterLost?(master: string, reason: string): void;
  /** There is a connection to a master after it was lost, or could not be opened at first. */
  masterFound?(master: string): void;
  /** Fewer masters than a quorum vote: no lock can be taken or extended. */
  quorumLost?(voting: number, masters: number, status: RedlockStatus): void;
  /** A quorum of masters votes after `quorumLost`, or after a `firstStatus` without a quorum. */
  quorumRestored?(voting: number, masters: number, status: RedlockStatus): void;
  /** A master that was silent answers again. */
  masterAnswersAgain?(master: string): void;
  /** Receives the events of the scheduled jobs of this lock service on this instance. */
  readonly jobs?: JobObserver;
  /** Receives the events of the elections of this lock service on this instance. */
  readonly elections?: ElectionObserver;
}

/** What a refusal means to the caller: an error (`fail`), or an expected outcome (`skip`). */
export type OnHeld = 'fail' | 'skip';

/**
 * Why a call that waits is woken:
 *
 * - `reserved`: a master has reserved what it waits for
 * - `dequeued`: a master has notified this process, for another call, and has this one no longer in its queue
 * - `admitted`: no call of its process is before it any more
 * - `first`: from now on, it asks the masters for the calls of its process that wait behind it
 * - `shared`: a call of its process was granted what it may share
 * - `released`: a lock of its process was released
 * - `master-ready`: a master can be used again
 * - `notifications-lost`: notifications of a master may not have arrived
 * - `deadline`: its `wait` is over
 */
export type WakeCause =
  | 'reserved'
  | 'dequeued'
  | 'admitted'
  | 'first'
  | 'shared'
  | 'released'
  | 'master-ready'
  | 'notifications-lost'
  | 'deadline';

/** What an acquisition asks for: an exclusive or a shared lock, or one of the permits of a name. */
export type AcquisitionKind = LockMode | 'permit';

/** How an acquisition went. */
export interface AcquisitionProgress {
  /** Number of rounds of requests to the masters. */
  readonly attempts: number;
  /** Milliseconds from the call to its outcome. */
  readonly taken: number;
  /** Milliseconds of `taken` in which it only waited, for its turn or for a better moment to ask the masters. */
  readonly waited: number;
}

/** Receives the events of one acquisition and of the lock that results from it. */
export interface AcquisitionObserver {
  /** The lock was acquired. */
  granted?(progress: AcquisitionProgress): void;
  /** The lock was not acquired. `error` is an error of this library, or the reason of a signal. */
  failed?(error: unknown, progress: AcquisitionProgress): void;
  /**
   * The acquired lock was released or lost.
   *
   * @param held how long the lock was held, in milliseconds
   */
  ended?(held: number, loss: LockLostError | undefined): void;
  /** Runs the work that is done under the lock. */
  within?<T>(work: () => T): T;
}

type Listening = LockObserver | AcquisitionObserver;

// Of one call, or of its lock.
const OF_CALLS = ['waiting', 'woken', 'lockInDanger', 'skipped', 'lockLost', 'masterAnswered'] as const;
const OF_THE_SERVICE = [
  ...(['stopped', 'firstStatus', 'masterSilent', 'masterQuarantined', 'masterRefused', 'masterVotesAgain'] as const),
  ...(['masterAtRisk', 'masterRiskEnded', 'masterAnswersAgain', 'masterLost', 'masterFound'] as const),
  ...(['quorumLost', 'quorumRestored'] as const),
] as const satisfies (keyof LockObserver)[];

// Has only the callbacks that at least one observer defines, so unobserved events cost nothing. `failed` receives what
// an observer throws, which affects neither the locks nor the others; it must not throw. `apart` runs what belongs to no
// call in a context of its own: without it, a line of the log about a master has the trace id of some request.
function combine(
  observers: readonly LockObserver[],
  failed: (error: unknown) => void,
  apart: (action: () => void) => void = (action) => action(),
): LockObserver {
  const notify: Notify = (listeners, event, args) => notifyAll(listeners, event, args, failed);
  const combined = {};
  const add = (event: keyof LockObserver, through: Notify): void => {
    const listeners = observers.filter((observer) => observer[event] !== undefined);
    if (listeners.length > 0) Reflect.set(combined, event, (...args: unknown[]) => through(listeners, event, args));
  };
  for (const event of OF_CALLS) add(event, notify);
  for (const event of OF_THE_SERVICE) add(event, (...all) => apart(() => notify(...all)));
  if (observers.some((observer) => observer.acquiring !== undefined))
    Reflect.set(combined, 'acquiring', acquiring(observers, notify, failed));
  for (const part of ['jobs', 'elections'] as const) {
    const listeners = observers.flatMap((observer) => observer[part] ?? []);
    const combinedPart = combinePart<object>(() => listeners, failed);
    if (listeners.length > 0) Reflect.set(combined, part, combinedPart);
  }
  return combined;
}

// What is reported beside locks.
type Parts = Required<Pick<LockObserver, 'jobs' | 'elections'>>;

// Has every callback: none of them is called often. `observers` is asked at each event.
function combinePart<Observer extends object>(
  observers: () => readonly Observer[],
  failed: (error: unknown) => void,
): Required<Observer> {
  const get =
    (_: object, event: string | symbol) =>
    (...args: readonly unknown[]): void =>
      notifyAll(observers(), event, args, failed);
  return new Proxy({}, { get }) as Required<Observer>;
}

// The observers of all jobs, or of all elections, of this instance: they come and go.
export class PartObservers<Part extends keyof Parts> {
  private readonly observers: Parts[Part][];

  // `failed` receives what an observer throws; it must not throw.
  constructor(
    private readonly part: Part,
    log: Parts[Part],
    private readonly failed: (error: unknown) => void,
  ) {
    this.observers = [log];
  }

  // Returns a function that removes it.
  add(observer: Parts[Part]): () => void {
    this.observers.push(observer);
    let isAdded = true;
    return () => {
      if (isAdded) this.observers.splice(this.observers.indexOf(observer), 1);
      isAdded = false;
    };
  }

  // Together with those of a lock service.
  beside(service: LockObserver): Required<Parts[Part]> {
    return combinePart(() => [...this.observers, ...[service[this.part] ?? []].flat()], this.failed);
  }
}

// `failed` receives what an observer throws, which affects no other observer; it must not throw.
function notifyAll(
  observers: readonly object[],
  event: string | symbol,
  args: readonly unknown[],
  failed: (error: unknown) => void,
): void {
  for (const observer of observers) {
    try {
      const method: unknown = Reflect.get(observer, event);
      const result: unknown = typeof method === 'function' && Reflect.apply(method, observer, args);
      settle(result, failed);
    } catch (error) {
      failed(error);
    }
  }
}

// An observer may be asynchronous, and an unhandled rejection ends the process. Whether it is.
function settle(
  result: unknown,
  failed: (error: unknown) => void,
  resolved: (value: unknown) => void = () => undefined,
): boolean {
  const isPromise = typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
  if (isPromise) void Promise.resolve(result).then(resolved, failed).catch(failed);
  return isPromise;
}

// The observer that `ask` returns, for what is reported next: a promise of one comes too late for that.
export function askedObserver<Observer>(
  ask: () => Observer | undefined,
  failed: (error: unknown) => void,
): Observer | undefined {
  try {
    const observer = ask();
    const tooLate = (value: unknown): void => {
      if (value != null) throw new TypeError('it gave the next observer in a promise, which is too late');
    };
    return settle(observer, failed, tooLate) ? undefined : observer;
  } catch (error) {
    failed(error);
    return undefined;
  }
}

type Notify = (listeners: readonly Listening[], event: string, args: readonly unknown[]) => void;

function acquiring(
  observers: readonly LockObserver[],
  notify: Notify,
  failed: (error: unknown) => void,
): NonNullable<LockObserver['acquiring']> {
  return (resources, onHeld, kind) => {
    const ask = (observer: LockObserver) => () => observer.acquiring?.(resources, onHeld, kind);
    const listeners = observers.flatMap((observer) => askedObserver(ask(observer), failed) ?? []);
    return {
      granted: (...args) => notify(listeners, 'granted', args),
      failed: (...args) => notify(listeners, 'failed', args),
      ended: (...args) => notify(listeners, 'ended', args),
      within: (work) => listeners.reduce((inner, listener) => shielded(inner, listener, failed), work)(),
    };
  };
}

// The work runs exactly once and its outcome counts, whatever the observer does.
function shielded<T>(work: () => T, observer: AcquisitionObserver, failed: (error: unknown) => void): () => T {
  if (!observer.within) return work;
  return () => {
    let outcome: (() => T) | undefined;
    const once = (): T => {
      outcome ??= settled(work);
      return outcome();
    };
    try {
      const result: unknown = around(once, observer)();
      // Usually the promise of the work itself, which is handled where the work's outcome goes.
      settle(result, outcome ? () => undefined : failed);
    } catch (error) {
      if (!outcome) failed(error);
    }
    return once();
  };
}

// Runs work once. Each call of the returned function yields its result or throws its error.
function settled<T>(work: () => T): () => T {
  try {
    const result = work();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function around<T>(work: () => T, observer: AcquisitionObserver): () => T {
  const within = observer.within?.bind(observer);
  return within ? () => within(work) : work;
}

// Observers to which more can be added later. A callback that none of them defines still costs nothing.
export class ObserverHub {
  // The same object for as long as the hub lives.
  readonly observer: LockObserver = {};
  private observers: readonly LockObserver[] = [];

  // As for `combine`.
  constructor(
    private readonly failed: (error: unknown) => void = () => undefined,
    private readonly apart?: (action: () => void) => void,
  ) {}

  add(...observers: readonly LockObserver[]): this {
    return this.set([...this.observers, ...observers]);
  }

  // The added observer gets the cause before what another observer concludes from it. Acquisitions that began earlier
  // do not reach it.
  precede(observer: LockObserver): this {
    return this.set([observer, ...this.observers]);
  }

  private set(observers: readonly LockObserver[]): this {
    this.observers = observers;
    Object.assign(this.observer, combine(this.observers, this.failed, this.apart));
    return this;
  }
}

// Without an observer, there is none.
export class AcquisitionRecorder {
  private since: number;

  constructor(
    private readonly observer: AcquisitionObserver,
    private readonly clock: Clock,
  ) {
    this.since = this.now;
  }

  granted(attempts: number, waited = 0): void {
    this.observer.granted?.(this.progress(attempts, waited));
    this.since = this.now;
  }

  failed(error: unknown, attempts: number, waited = 0): void {
    this.observer.failed?.(error, this.progress(attempts, waited));
  }

  ended(loss: LockLostError | undefined): void {
    this.observer.ended?.(this.now - this.since, loss);
  }

  around<T>(work: () => T): () => T {
    return around(work, this.observer);
  }

  private progress(attempts: number, waited: number): AcquisitionProgress {
    return { attempts, waited, taken: this.now - this.since };
  }

  // The monotonic clock is enough for measurements, and the wall clock has a resolution of only one millisecond.
  private get now(): number {
    return this.clock.read().monotonic;
  }
}
