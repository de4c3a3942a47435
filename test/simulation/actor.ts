import type { Instant } from '../../lib/redlock/clock.js';
import { LockLostError, LockServiceStoppedError, QuorumUnavailableError } from '../../lib/redlock/errors.js';
import { LockNotAcquiredError } from '../../lib/waiting/lock-not-acquired.error.js';
import { queuesOf } from '../../lib/kinds/permits.js';
import type { Lock } from '../../lib/locks/lock.js';
import { masterTimeoutFor, resolveCall } from '../../lib/settings/settings.js';
import type { SimNode } from './node.js';
import { watchNested } from './properties/nesting.js';
import { Violation } from './properties/violation.js';
import type { InnerOperation, Operation, StatePlan } from './schedule.js';
import { StateUser } from './state-user.js';
import type { World } from './world.js';

/** Delay that timers and turns of the event loop add to a wait, in milliseconds. */
const LATENESS = 10;
/** Of its own process, without a waiting budget, in milliseconds. */
const PAUSE = 1_000;
/** A lock whose ttl is shorter than this many one-way trips over the network cannot be kept. */
const ROUND_TRIPS = 30;

/** How many permits one attempt tries to take. */
const MAX_PICKS = 4;

/** One operation of a schedule, which a process performs as an application would. */
export class Actor {
  /** Whether it waits for a lock and has not been aborted. */
  isWaiting = false;
  /** Whether it was granted its lock and has not released it, even if it has lost it. */
  isHolding = false;
  hasFailed = false;
  isDone = false;
  private lock: Lock | undefined;
  /** The actor of what its work asks for. */
  private inner: Actor | undefined;
  /** What follows when it is done: of an inner one. */
  private whenDone: (() => void) | undefined;
  private abort: AbortController | undefined;
  private abortedAt: number | undefined;
  private asked: { readonly at: number; readonly stopped: number; readonly read: Instant } | undefined;
  private open = 0;

  constructor(
    readonly name: string,
    readonly node: SimNode,
    readonly operation: Operation,
    private readonly world: World,
    /** The one whose work it is, which has its lock. */
    readonly outer?: Actor,
  ) {}

  /** What its call chain holds. */
  get held(): readonly string[] {
    return [...(this.outer?.held ?? []), ...(this.lock ? queuesOf(this.lock) : [])];
  }

  begin(): void {
    const { node, operation, outer } = this;
    const { wait, extend, minHold, ttl, abortAfter, mode, permits } = operation;
    const { process } = node;
    const maxHold = Math.max(ttl, 60_000);
    if (abortAfter !== undefined) this.abort = new AbortController();
    const signal = this.abort && { signal: this.abort.signal };
    const kind = mode ? { mode } : { minHold };
    const places = permits !== undefined && { permits };
    const call = resolveCall(node.settings, { ttl, wait, extend, maxHold, ...kind, ...places, ...signal });
    this.asked = {
      at: this.world.scheduler.now,
      stopped: process.stopped,
      read: process.read(),
    };
    this.isWaiting = true;
    if (outer) watchNested(this, this.world);
    this.world.trace(this.name, () => `asks for ${this.wish} (ttl ${ttl}, wait ${wait})`);
    if (abortAfter !== undefined) this.world.later(node, abortAfter, () => this.giveUp());
    this.track(
      through(operation.functions, async () =>
        node.redlock.acquire(operation.resources, call, { isNested: (outer?.held.length ?? 0) > 0 }),
      ),
    ).then(
      (lock) => this.guard(() => this.work(lock)),
      (error: unknown) => this.guard(() => this.refused(error)),
    );
    this.block('asked');
  }

  private get wish(): string {
    const { resources, mode, permits } = this.operation;
    const kind = permits === undefined ? (mode ?? '') : `one of ${permits} permits of`;
    return `${kind} ${resources.join(', ')}`.trimStart();
  }

  private work(lock: Lock): void {
    const { node, operation, world } = this;
    const { work, tokenAt, newTtl, state, inner } = operation;
    this.isWaiting = false;
    this.isHolding = true;
    this.lock = lock;
    if (this.abortedAt !== undefined) this.fail(`got a lock after it had given up`);
    world.granted(this);
    const began = world.beliefs.begin(this.name, node, operation);
    world.checkSharedKeys();
    world.trace(
      this.name,
      () => `has ${lock.slot === undefined ? 'it' : `permit ${lock.slot}`}, for ${lock.remaining().toFixed(1)} ms`,
    );
    // For the trace only: signals are expensive, and nothing else depends on them.
    if (world.isTraced) {
      lock.signal.addEventListener('abort', () =>
        world.trace(this.name, () => `is notified: ${lock.loss?.message ?? ''}`),
      );
    }
    if (tokenAt !== undefined) world.later(node, tokenAt * work, () => this.askForToken(lock, began));
    if (newTtl !== undefined) world.later(node, work / 2, () => this.extend(lock, newTtl));
    if (state) world.later(node, state.at * work, () => this.useState(lock, state));
    if (inner) world.later(node, inner.after, () => this.nest(inner));
    world.later(node, work, () => this.finish(lock));
    this.block('held');
  }

  private nest(inner: InnerOperation): void {
    const { name, world, operation } = this;
    const { process } = operation;
    this.inner = world.add(`${name}/inner`, { ...inner, at: world.scheduler.now, process }, this);
  }

  /** Releases the lock once what its work has asked for is over, too. */
  private finish(lock: Lock): void {
    const { inner } = this;
    if (!inner || inner.isDone) this.release(lock);
    else inner.whenDone = () => this.release(lock);
  }

  /** Nothing else follows, except for what its outer one does. */
  end(): void {
    this.isDone = true;
    this.whenDone?.();
  }

  private block(when: 'asked' | 'held' | 'released'): void {
    const { node, operation, world } = this;
    if (operation.blocks?.when !== when) return;
    world.trace(this.name, () => `blocks its process for ${operation.blocks?.lasts} ms`);
    node.process.block(operation.blocks.lasts);
  }

  private askForToken(lock: Lock, began: number): void {
    this.track(lock.fencingToken()).then(
      (token) =>
        this.guard(() => {
          this.world.trace(this.name, () => `has the token ${token}`);
          // The tokens of a permit order its own holders only.
          const { slot } = lock;
          const names = this.operation.resources.map((name) => (slot === undefined ? name : `${slot} of ${name}`));
          this.world.tokens.note(names, token, this.name, began);
        }),
      (error: unknown) => this.guard(() => this.expect(error, [LockLostError])),
    );
  }

  private useState(lock: Lock, plan: StatePlan): void {
    const { name, node, world, operation } = this;
    new StateUser({
      name,
      ...{ node, world, lock, plan, resource: operation.resources[0] as string },
      track: (promise) => this.track(promise),
      guard: (action) => this.guard(action),
      expect: (error, kinds) => this.expect(error, kinds),
    }).begin();
  }

  private extend(lock: Lock, ttl: number): void {
    this.track(lock.extend(ttl)).then(
      () => this.world.trace(this.name, () => `has extended it to ${ttl}`),
      (error: unknown) => this.guard(() => this.expect(error, [LockLostError, QuorumUnavailableError])),
    );
  }

  private release(lock: Lock): void {
    const { node, world } = this;
    const { stopped } = node.process;
    const at = world.scheduler.now;
    this.checkKept(lock);
    world.trace(this.name, () => (lock.isHeld ? 'releases' : 'has lost it'));
    if (lock.isHeld) world.health.noteRelease(this, lock.slot);
    this.isHolding = false;
    void this.track(lock.release()).then(() =>
      this.guard(() => {
        if (!node.hasLeft) {
          const { masterTimeout } = node.settings;
          this.checkDuration('releasing', at, stopped, masterTimeout);
        }
        this.end();
        world.checkSharedKeys();
      }),
    );
    this.block('released');
  }

  /** Checks that a process that no fault touches keeps its lock, whatever happens to others. */
  private checkKept(lock: Lock): void {
    const { node, operation, world } = this;
    const { assumptions, scheduler, sometimes } = world;
    const isKept = assumptions.isHealthyOnAMajority(node) && !world.beliefs.wasPartial(operation.resources);
    if (!operation.extend || !(isKept || assumptions.isHealthy(node))) return;
    // A master may take a quarter of the ttl to answer, and an extension may need a second attempt.
    if (Math.min(operation.ttl, operation.newTtl ?? Infinity) < ROUND_TRIPS * world.schedule.latency) return;
    if (lock.isHeld && assumptions.ailments.length > 0)
      sometimes.reached('a healthy client held a lock beside a sick one');
    if (lock.isHeld && assumptions.hasHitMasters)
      sometimes.reached('a lock outlived a fault of a minority of the masters');
    if (lock.isHeld || lock.loss?.cause === 'max-hold') return;
    const message = `${this.name} lost its lock, and nothing had happened to it or to a majority of the masters: ${lock.loss?.message}`;
    throw new Violation('a healthy client keeps its locks', scheduler.now, message);
  }

  private refused(error: unknown): void {
    this.isWaiting = false;
    this.hasFailed = true;
    this.end();
    this.world.health.sharing.noteFailure(this);
    this.world.trace(this.name, () => `gets nothing: ${String(error)}`);
    if (this.operation.permits !== undefined) this.world.sometimes.reached('all permits were taken');
    if (this.abortedAt !== undefined) {
      const isLate = this.abortedAt < this.world.scheduler.now;
      if (isLate) this.fail('was not notified at once that its waiting was over');
      return;
    }
    const { node, operation, asked } = this;
    if (node.hasLeft && error instanceof LockServiceStoppedError) return;
    this.expect(error, [LockNotAcquiredError, QuorumUnavailableError]);
    if (!asked) return;
    const { wait, ttl, permits } = operation;
    // A lost connection is awaited for as long as a round may take. Through the home master, an attempt takes two rounds.
    // The first one includes several permits.
    const rounds = 1 + (permits === undefined ? 2 : 1 + 2 * Math.min(permits, MAX_PICKS));
    const attempt = masterTimeoutFor(node.settings, ttl) * rounds;
    this.checkDuration('waiting', asked.at, asked.stopped, wait + attempt);
    if (error instanceof QuorumUnavailableError) this.checkPatience(error, node.process.stopped - asked.stopped);
    // Neither a wall clock that is set nor a suspended machine ends a wait.
    const elapsed = node.process.read().monotonic - asked.read.monotonic;
    if (elapsed < wait) this.fail(`waited ${elapsed.toFixed(1)} ms of ${wait} ms`);
  }

  /** Checks that masters that are fine are not blamed for a pause of the process. */
  private checkPatience(error: QuorumUnavailableError, paused: number): void {
    const { node, operation, world } = this;
    const { assumptions, schedule } = world;
    const { wait, ttl } = operation;
    const isBlamed = error.answers.some(({ answer }) => answer?.kind === 'timeout');
    const isFine = assumptions.mastersAreFine && assumptions.ratesAreNormal && !assumptions.isSick(node);
    const isNear = ROUND_TRIPS * schedule.latency <= ttl && 2 * schedule.latency < masterTimeoutFor(node.settings, ttl);
    // A lock that has ended before its work could begin is a failure, too.
    const isShort = paused > 0 && paused < Math.min(wait || PAUSE, ttl / 2);
    if (!isBlamed || !isFine || !isNear || !isShort) return;
    const message = `${this.name} failed after a pause of ${paused.toFixed(1)} ms: ${error.message}`;
    throw new Violation('no call fails for a pause of its process', world.scheduler.now, message);
  }

  private giveUp(): void {
    if (!this.isWaiting) return;
    this.abortedAt = this.world.scheduler.now;
    this.isWaiting = false;
    this.abort?.abort(new Error('enough'));
  }

  /** Checks a duration, not counting the time during which the process did not run. */
  private checkDuration(what: string, since: number, stopped: number, bound: number): void {
    const { process } = this.node;
    const paused = process.stopped - stopped;
    const took = (this.world.scheduler.now - since - paused) * process.clocks.slowest;
    // A time limit that is late, because the process stood still, grows once by as much.
    if (took > bound + Math.min(paused, bound) + LATENESS)
      this.fail(`${what} took ${took.toFixed(1)} ms, not ${bound} ms at most`);
  }

  private expect(error: unknown, kinds: readonly (new (...args: never[]) => Error)[]): void {
    if (kinds.some((kind) => error instanceof kind)) return;
    const reported = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.world.report(new Violation('no unexpected error', this.world.scheduler.now, `${this.name}: ${reported}`));
  }

  private fail(message: string): never {
    throw new Violation('a wait is as long as its budget', this.world.scheduler.now, `${this.name} ${message}`);
  }

  /** When it asked for its lock, in true time; `Infinity` before that. */
  get askedAt(): number {
    return this.asked?.at ?? Infinity;
  }

  get signal(): AbortSignal | undefined {
    return this.abort?.signal;
  }

  get pending(): number {
    return this.open;
  }

  private async track<T>(promise: Promise<T>): Promise<T> {
    this.open++;
    try {
      return await promise;
    } finally {
      this.open--;
    }
  }

  /** Reports an error in a promise callback, which would otherwise be lost. */
  private guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.world.report(error);
    }
  }
}

/** Awaits a result behind so many asynchronous functions. */
async function through<T>(functions = 0, result: () => Promise<T>): Promise<T> {
  return await (functions > 0 ? through(functions - 1, result) : result());
}
