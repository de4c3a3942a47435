import type { Call } from './call.js';
import { type Clock, Condition } from './clock.js';
import { LockLostError, LockServiceStoppedError } from './errors.js';
import type { Random, TokenSource } from './holder.js';
import { Lease } from './lease.js';
import type { LeaseContext, PassedLock } from './terms.js';
import { LinkedList } from './linked-list.js';
import { Mutex } from './mutex.js';
import { PendingReleases, type Rules } from './round.js';
import type { Server } from './server.js';
import type { Timing } from './validity.js';

interface RedlockOptions extends Pick<LeaseContext<Lease>, 'reopened' | 'lost' | 'inDanger' | 'controller'> {
  readonly masters: readonly Server[];
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly tokens: TokenSource;
}

interface Start<T> {
  readonly begin: (lease: Lease) => T;
  // The work is the code that awaits the result: no other reaction to a promise may block the process before it.
  readonly isAwaited: boolean;
}

// Distributed locks over N independent masters: who calls, and who holds.
// @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
export class Redlock {
  readonly calls = new LinkedList<Call>();
  readonly held = new LinkedList<Lease>();
  private readonly rules: Rules;
  private readonly leases: LeaseContext<Lease>;
  private readonly releases = new PendingReleases();
  private stopped = false;
  private readonly noneCalls = new Condition(() => this.calls.isEmpty);
  private readonly idle = new Condition(() => this.held.isEmpty && this.calls.isEmpty);

  constructor(private readonly options: RedlockOptions) {
    const { masters, timing, clock, random, controller, reopened, lost, inDanger } = options;
    this.rules = { masters, clock, timing, releases: this.releases };
    this.leases = {
      ...{ clock, random, controller, reopened, lost, inDanger, masters: masters.length },
      ended: (lease) => this.letGo(lease),
    };
    // Timers stand still while the machine is suspended: end the locks whose validity ended in that time.
    clock.onResume?.(() => {
      for (const lease of this.held.members) lease.noteTime();
    });
  }

  get isStopped(): boolean {
    return this.stopped;
  }

  // Begins work in the same turn in which the lock is seen to be held. A lock that has ended before its work could
  // begin is released, and acquired anew while the budget lasts.
  async start<T>(call: Call, { begin, isAwaited }: Start<T>): Promise<T> {
    let lease: Lease;
    this.calls.add(call);
    if (this.stopped) call.cancellation.stop(new LockServiceStoppedError(call.resources));
    try {
      for (let isRepeated = false; ; isRepeated = true) {
        lease = this.hold(call, await this.acquire(call, isRepeated));
        if (isAwaited) await this.ownTurn(); // @mutant work-begun-among-other-reactions
        if (call.cancellation.isStopped) void lease.release();
        call.cancellation.check();
        call.beginning(lease);
        lease.begin();
        if (lease.isUsed) break;
        call.unused();
      }
    } catch (reason) {
      throw call.failed(reason);
    } finally {
      this.calls.remove(call);
      call.end();
      this.noneCalls.check();
      this.idle.check();
    }
    return begin(lease);
  }

  // Held locks are kept.
  stop(): void {
    this.stopped = true;
    for (const call of this.calls.members) call.cancellation.stop(new LockServiceStoppedError(call.resources));
  }

  // Waits at most `timeout` milliseconds until all locks are released and no acquisition is under way. Locks that are
  // still held after that are lost with the cause `shutdown`.
  async drain(timeout: number): Promise<void> {
    if (timeout > 0) await this.idle.metWithin(timeout, this.options.clock);
    this.loseAll();
  }

  // Acquisitions end at once, and all releases are given `masterTimeout` to be answered by a quorum.
  async end(): Promise<void> {
    this.stop();
    // A lock that was just granted belongs to a call that is about to notice that it was stopped.
    await this.noneCalls.met();
    this.loseAll();
    await this.releases.settled();
  }

  // Attempts, each with a token of its own, until one is granted or the time of the call is over.
  private async acquire(call: Call, isRepeated: boolean): Promise<Mutex | PassedLock> {
    const { cancellation } = call;
    const waiting = call.begin(isRepeated);
    try {
      for (let attempt = 1; ; attempt++) {
        const turn = waiting.plan(attempt);
        const plan = turn instanceof Promise ? await turn : turn;
        if (!plan) throw await waiting.failure();
        if ('extension' in plan) return plan;
        cancellation.check();
        // Protocol 4.5
        const token = this.options.tokens.next(call.since.wall); // @mutant token-reused-across-attempts
        const mutex = new Mutex(this.rules, plan.primitive, token);
        cancellation.interrupt = mutex;
        const quorumCall = await mutex.acquire(call.terms.ttl, plan);
        cancellation.interrupt = undefined;
        // Protocol 4.4
        const isTaken = quorumCall.outcome === 'granted' && mutex.remaining > 0 && !cancellation.isStopped;
        waiting.note(quorumCall, isTaken);
        if (isTaken) return mutex;
        // There is nothing to release if the first master alone was asked, and has refused.
        const isAlone = plan.first !== undefined && !plan.first.together;
        // Protocol 4.5
        if (!isAlone || !quorumCall.isRefused) void mutex.release(0);
        cancellation.check();
        await waiting.pause(quorumCall);
      }
    } finally {
      waiting.end();
    }
  }

  private hold(call: Call, taken: Mutex | PassedLock): Lease {
    const passed = taken instanceof Mutex ? undefined : taken;
    const mutex = taken instanceof Mutex ? taken : taken.mutex;
    const lease = new Lease(call.granted(mutex), mutex, this.leases);
    this.held.add(lease);
    if (passed) lease.takeOver(passed);
    return lease;
  }

  private letGo(lease: Lease): void {
    this.held.remove(lease);
    lease.terms.ended(lease);
    this.idle.check();
  }

  private loseAll(): void {
    for (const lease of this.held.members) lease.lose(new LockLostError(lease.resources, 'shutdown'));
  }

  // Resolves when nothing else is left to react to in this turn of the event loop.
  private ownTurn(): Promise<void> {
    return new Promise((resolve) => this.options.clock.afterTurn(resolve));
  }
}
