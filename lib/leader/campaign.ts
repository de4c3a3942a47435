import { setMaxListeners } from 'node:events';
import {
  type Clock,
  type ElectionObserver,
  isLockError,
  type LeaderReport,
  type Lock,
  type LockHolder,
  LockLostError,
  type LockService,
  RedlockConfigError,
} from '../index.js';
import { apart, elapsedSince, pause, refuseStream, schema } from '../internal.js';

// Complete and validated.
export interface ElectionSettings {
  readonly name: string;
  readonly resource: string;
  // In milliseconds.
  readonly ttl: number;
  // A value or a function.
  readonly data: unknown;
}

/** The application is shutting down: the reason of `Leadership.signal`. Another instance leads when the method has ended. */
export class LeadershipResignedError extends Error {
  /** A stable code for programs. */
  readonly code = 'LEADERSHIP_RESIGNED';

  constructor() {
    super('the application is shutting down: another instance leads as soon as the method has ended');
    this.name = LeadershipResignedError.name;
  }
}

/** The leadership of this instance. The decorated method receives it. */
export interface Leadership {
  /** Name of the election. */
  readonly election: string;
  /**
   * Larger than every term of this name before it: the fencing token of the lock. Send it with each write, so that the
   * resource can refuse what an earlier leader writes late.
   */
  readonly term: number;
  /**
   * Aborts when the method has to end: when the lock is lost or released, with a `LockLostError`, and at the shutdown of the
   * application, with a {@link LeadershipResignedError}. Pass it to all work that can end early.
   */
  readonly signal: AbortSignal;
  /** The lock of the election. Its `state` belongs to the election. */
  readonly lock: Lock;
  /** Resolves when the signal aborts: for a method that only starts something, and stops it afterwards. */
  readonly ended: Promise<void>;
}

interface CampaignContext {
  // The decorator, the class and the method, for messages.
  readonly where: string;
  readonly call: (leadership: Leadership) => unknown;
  readonly locks: LockService;
  readonly observer: Required<ElectionObserver>;
  // In [0, 1).
  readonly fraction: () => number;
}

// In milliseconds. A wait that ends early would cost the turn in the queue.
const WAIT = schema.MAX_DURATION;
// In milliseconds.
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;
// A leader for so many milliseconds pauses as briefly as if it had never paused.
const SETTLED_AFTER = 60_000;
// In milliseconds: for how long a leader waits until others can read its term.
const STORED_WITHIN = 1_000;
// In milliseconds: a method that returns within this time hardly leads; one that goes on for longer after a loss is reported.
const MOMENT = 1_000;
// The state of the lock, for messages.
const RECORD = 'the record of the election';
// Ten years, in milliseconds: the state is written once in a term.
const STATE_LIFE = 3_650 * 86_400_000;

// What the lock service makes of options, and of a lock.
type Campaigning = Parameters<LockService['holdWith']>[1];
type Scope = Awaited<ReturnType<LockService['holdWith']>>;

interface Reign {
  readonly term: number;
  readonly lock: Lock;
  readonly ending: AbortController;
}

// One election on one instance: waits for the lock, leads, and campaigns again.
export class Campaign {
  private readonly stopping = new AbortController();
  private readonly clock: Clock;
  private reign: Reign | undefined;
  private pauses = 0;
  // The largest that is known here.
  private lastTerm = 0;
  private seen: LockHolder | undefined;
  private isReading = false;
  private readonly conflicts = new Set<string>();

  constructor(
    readonly settings: ElectionSettings,
    private readonly context: CampaignContext,
  ) {
    this.clock = context.locks.environment.clock;
  }

  // By the clock now, unless the method was asked to end.
  get isLeader(): boolean {
    return this.reign !== undefined && !this.isStopping && this.reign.lock.isHeld;
  }

  get isOverrun(): boolean {
    return this.reign?.lock.loss !== undefined;
  }

  start(): void {
    // The module may be started by a request, or under a lock.
    apart(() => void this.run());
  }

  // Leaves the queue, and asks the method to end.
  stop(): void {
    this.stopping.abort(new LeadershipResignedError());
  }

  private get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  private async run(): Promise<void> {
    const { settings, context, stopping } = this;
    const { call } = context.locks.workSettings({ ttl: settings.ttl, wait: WAIT, signal: stopping.signal });
    const campaigning: Campaigning = {
      ...{ ...call, maxHold: Infinity, outlivesShutdown: true },
      refused: (holder) => this.follow(holder),
      // The telemetry of locks would show a campaign as a wait, and a leadership as a hold.
      listener: { ended: (_held, loss) => this.noteRelease(loss) },
    };
    while (!stopping.signal.aborted) {
      try {
        const loss = await this.lead(await context.locks.holdWith(settings.resource, campaigning));
        if (loss) {
          if (loss.cause !== 'owner-changed') continue;
          // It would be elected again when the lock that an operator has taken away expires.
          await pause(this.clock, settings.ttl, stopping.signal);
        }
      } catch (error) {
        if (this.isStopping || isLockError(error, 'LOCK_SERVICE_STOPPED')) return;
        if (isLockError(error, 'LOCK_NOT_ACQUIRED')) continue;
        context.observer.problem(settings.name, error);
        if (isLockError(error, 'LOCK_CONFIG')) return;
      }
      await pause(this.clock, this.pauseAfter(this.pauses++), stopping.signal);
    }
  }

  // Resolves to the loss, if the leadership was lost.
  private async lead(scope: Scope): Promise<LockLostError | undefined> {
    const { settings, stopping } = this;
    const { lock } = scope;
    const granted = this.clock.read();
    const ending = new AbortController();
    // It is passed to all work of a leader: many listeners are no leak, of which Node would warn.
    setMaxListeners(0, ending.signal);
    const stop = (): void => ending.abort(stopping.signal.reason);
    stopping.signal.addEventListener('abort', stop);
    lock.signal.addEventListener('abort', () => this.noteLoss(lock, ending));
    try {
      const term = await Promise.race([lock.fencingToken(), pause(this.clock, settings.ttl, ending.signal)]);
      if (term === undefined) {
        lock.assertHeld();
        throw new Error(`no term could be drawn within ${settings.ttl} ms`);
      }
      await Promise.race([this.store(lock, term, ending.signal), pause(this.clock, STORED_WITHIN, ending.signal)]);
      lock.assertHeld();
      if (this.isStopping) return undefined;
      return await this.serve(scope, ending, { term, taken: elapsedSince(this.clock, granted) });
    } finally {
      stopping.signal.removeEventListener('abort', stop);
      ending.abort();
      await scope.end();
    }
  }

  private async serve(
    scope: Scope,
    ending: AbortController,
    { term, taken }: { readonly term: number; readonly taken: number },
  ): Promise<LockLostError | undefined> {
    const { name } = this.settings;
    const { where, call, observer } = this.context;
    const { lock } = scope;
    const { signal } = ending;
    const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    // What follows happens in one turn, up to the call of the method.
    lock.assertHeld();
    lock.state.reserve(RECORD);
    const begun = this.clock.read();
    const reign: Reign = { term, lock, ending };
    this.reign = reign;
    this.lastTerm = term;
    observer.elected(name, term, taken);
    let error: unknown;
    try {
      await promiseOf(
        where,
        scope.run(() => call({ election: name, term, signal, lock, ended })),
      );
    } catch (thrown) {
      if (!isReasonOf(signal, thrown)) error = thrown ?? new Error('the method has failed without a reason');
    }
    // The clock is read: a loss that no timer has noticed is reported first.
    const { loss } = lock;
    this.reign = undefined;
    const led = elapsedSince(this.clock, begun);
    if (led >= SETTLED_AFTER) this.pauses = 0;
    if (loss) {
      if (error !== undefined) observer.problem(name, error);
      return loss;
    }
    observer.resigned(name, term, error);
    if (isLockError(error, 'LOCK_CONFIG') && error.option === where) throw error;
    if (led < MOMENT && !signal.aborted && error === undefined) observer.problem(name, returnedTooSoon(led));
    return undefined;
  }

  // By the method, unless it has ended.
  private noteRelease(loss: LockLostError | undefined): void {
    if (!loss) this.reign?.ending.abort(new LockLostError([this.settings.resource], 'released'));
  }

  private noteLoss(lock: Lock, ending: AbortController): void {
    const { reign } = this;
    if (reign?.lock === lock) {
      const { name } = this.settings;
      this.context.observer.lost(name, reign.term, lock.signal.reason as LockLostError);
      const report = (): void => {
        if (this.reign === reign) this.context.observer.overrun(name, reign.term);
      };
      this.clock.schedule(MOMENT, report).unref();
    }
    ending.abort(lock.signal.reason);
  }

  // A leader leads without its state: others then know its instance, and not its term.
  private async store(lock: Lock, term: number, signal: AbortSignal): Promise<void> {
    const { instance = '', since = new Date(NaN) } = lock.holder ?? {};
    let { data } = this.settings;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const given: unknown = typeof data === 'function' ? await (data as () => unknown)() : data;
        const record = { term, instance, since: since.getTime(), method: this.context.where, data: given };
        await lock.state.store(RECORD, record, { expireAfter: STATE_LIFE });
        return;
      } catch (error) {
        if (!lock.isHeld) return;
        if (failures === 0) this.context.observer.problem(this.settings.name, error);
        // Not the masters, but the data is the problem.
        if (!isLockError(error) || isLockError(error, 'LOCK_CONFIG')) data = undefined;
        await pause(this.clock, this.pauseAfter(failures), signal);
      }
    }
  }

  // Called with the holder that a poll has met.
  private follow(holder: LockHolder | undefined): void {
    const { seen } = this;
    const isKnown = seen && seen.instance === holder?.instance && seen.since.getTime() === holder.since.getTime();
    if (!holder || isKnown || this.isReading) return;
    this.isReading = true;
    void this.readLeader(holder).finally(() => (this.isReading = false));
  }

  private async readLeader(holder: LockHolder): Promise<void> {
    const { settings, context } = this;
    const leader = await context.locks.operator.leader(settings.resource, holder).catch(() => undefined);
    // It is stored soon after the grant: the next poll reads it.
    if (leader?.term === undefined) return;
    this.seen = holder;
    this.noteConflict(leader);
    if (leader.term <= this.lastTerm || this.isStopping) return;
    this.lastTerm = leader.term;
    context.observer.changed(settings.name, leader);
  }

  // Once for each other method.
  private noteConflict({ method, instance }: LeaderReport): void {
    const { locks, observer, where } = this.context;
    if (method === undefined || method === where || this.conflicts.has(method)) return;
    this.conflicts.add(method);
    const { keyPrefix } = locks.environment.settings;
    const advice = `give each application a \`keyPrefix\` of its own (it is '${keyPrefix}'), or each election a name`;
    const message = `it is ${where} here, and ${method} on ${instance}, which leads: only one of them does at a time; ${advice}`;
    observer.problem(this.settings.name, new Error(message));
  }

  // In milliseconds.
  private pauseAfter(pauses: number): number {
    const bound = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (pauses + 1));
    return FIRST_PAUSE + this.context.fraction() * (bound - FIRST_PAUSE);
  }
}

function returnedTooSoon(led: number): Error {
  const advice = 'a method that only starts something has to `await leadership.ended`';
  return new Error(`the method has returned after ${Math.round(led)} ms without being asked to: ${advice}`);
}

// Of an error that an operation throws because the signal has aborted.
function isReasonOf(signal: AbortSignal, error: unknown): boolean {
  return signal.aborted && (error === signal.reason || (error as Error | undefined)?.name === 'AbortError');
}

// Whatever else a method starts would go on without the leadership.
function promiseOf(where: string, returned: unknown): PromiseLike<unknown> {
  refuseStream(where, returned, ': await it inside of the method');
  if (typeof (returned as PromiseLike<unknown> | undefined)?.then === 'function') return returned as Promise<unknown>;
  const requirement = 'needs a method that returns a promise, which ends with the leadership: `await leadership.ended`';
  throw new RedlockConfigError(where, returned, requirement);
}
