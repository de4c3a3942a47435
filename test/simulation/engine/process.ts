import type { Clock, Timer } from '../../../lib/redlock/clock.js';
import type { Chance } from './chance.js';
import type { MachineClock, SimInstant } from './machine-clock.js';
import { settlePromises } from './microtasks.js';
import type { Planned, Scheduler } from './scheduler.js';

/** How late a timer fires on an idle machine, in milliseconds. */
export const TIMER_LATENESS = 0.3;
/** No timer of the real clock sleeps longer than this, in milliseconds. */
const LONGEST_SLEEP = 1_000;
/** Duration of one turn of the event loop, in milliseconds. */
const TURN = 0.01;

/** How a process stops: alone, with its machine, or with its virtual machine, whose clocks then stop too. */
export type Stop = 'pause' | 'suspend' | 'stun';

class PendingTimer implements Timer {
  planned: Planned | undefined;

  constructor(
    private readonly timers: Set<PendingTimer>,
    readonly due: number,
    readonly callback: () => void,
  ) {
    timers.add(this);
  }

  cancel(): void {
    this.timers.delete(this);
    this.planned?.cancel();
  }

  unref(): this {
    return this;
  }
}

/**
 * One client process and its event loop: its timers, the input from its sockets, and its pauses.
 *
 * A paused process does nothing, whatever its clocks show. When it resumes, it first runs the timers that are due, and
 * then reads the input that has arrived meanwhile. This is the order of Node's event loop.
 */
export class SimProcess implements Clock {
  private readonly timers = new Set<PendingTimer>();
  private readonly inbox: (() => void)[] = [];
  private readonly listeners: (() => void)[] = [];
  /** The callbacks that follow the turn that began with this event. */
  private turn: (() => void)[] = [];
  private turnOf = -1;
  private catchingUp = false;
  /** What the clocks show to code that runs behind other code of its turn, which has blocked the event loop. */
  private behind: SimInstant | undefined;
  /** What such code sends: it leaves the process once that time has passed. */
  private readonly outbox: (() => void)[] = [];
  private pauses = 0;
  private dead = false;
  /** Since when it has run without a pause, in true time. */
  runsSince = 0;
  /** When its machine last resumed, in true time. */
  resumedAt = -Infinity;
  /** Whether its monotonic clock has ever jumped. */
  hasStumbled = false;
  /** Milliseconds of true time for which it was stopped, up to the end of its last pause. */
  private stoppedFor = 0;
  private stoppedAt = 0;

  constructor(
    readonly name: string,
    private readonly scheduler: Scheduler,
    readonly clocks: MachineClock,
    private readonly chance: Chance,
  ) {}

  get isRunning(): boolean {
    return this.pauses === 0 && !this.dead;
  }

  get isDead(): boolean {
    return this.dead;
  }

  get pendingTimers(): number {
    return this.timers.size;
  }

  isPending(timer: Timer | undefined): boolean {
    return this.timers.has(timer as PendingTimer);
  }

  /** Milliseconds of true time during which it has not run so far. */
  get stopped(): number {
    return this.stoppedFor + (this.pauses > 0 ? this.scheduler.now - this.stoppedAt : 0);
  }

  read(): SimInstant {
    return this.behind ?? this.clocks.read();
  }

  /** The code that runs now takes this many milliseconds. What else runs in this turn sees clocks that are later. */
  block(milliseconds: number): void {
    const { monotonic, wall, takenAt } = this.read();
    const isBlocked = this.behind !== undefined;
    this.behind = {
      monotonic: monotonic + milliseconds,
      wall: wall + milliseconds,
      takenAt: takenAt + milliseconds,
    };
    if (isBlocked || this.dead) return;
    if (this.pauses++ === 0) this.stop();
    this.catchUp();
  }

  /** Sends something: at once, or as soon as true time has come to the code that sends it. */
  send(action: () => void): void {
    if (this.behind) this.outbox.push(action);
    else action();
  }

  schedule(delay: number, callback: () => void): Timer {
    // Like Node: whole milliseconds, counted from a loop time that is also a whole number.
    const due = Math.floor(this.read().monotonic) + Math.max(1, Math.trunc(delay));
    const timer = new PendingTimer(this.timers, due, callback);
    if (this.isRunning) this.plan(timer);
    return timer;
  }

  /** The clocks have diverged. A timer fires within a second, and compares them. */
  noteClocks(): void {
    const noticed = this.chance.fraction() * LONGEST_SLEEP;
    this.scheduler.after(noticed, () => this.receive(() => this.listeners.forEach((listener) => listener())));
  }

  /** While the clocks diverge, each comparison finds that they have. */
  private compareClocks(until: number): void {
    if (this.scheduler.now >= until) return;
    this.noteClocks();
    this.scheduler.after(LONGEST_SLEEP / this.clocks.monotonicRate, () => this.compareClocks(until));
  }

  onResume(listener: () => void): void {
    this.listeners.push(listener);
  }

  afterInput(callback: () => void): void {
    this.scheduler.after(2 * TURN, () => this.receive(callback));
  }

  /** Collects the requests that one turn makes to several masters, and sends them together. */
  afterTurn(callback: () => void): void {
    if (this.turnOf === this.scheduler.steps) {
      this.turn.push(callback);
      return;
    }
    const turn = [callback];
    this.turn = turn;
    this.turnOf = this.scheduler.steps;
    this.scheduler.after(0, () => this.receive(() => runAll(turn)));
  }

  /** Handles an event from outside: at once, or when the process resumes. */
  receive(action: () => void): void {
    if (this.dead) return;
    if (this.isRunning && !this.catchingUp) action();
    else this.inbox.push(action);
  }

  /** Stops for a while. The monotonic clock of a suspended machine stops too; a stunned machine stops both clocks. */
  pause(milliseconds: number, how: Stop): void {
    // What blocks the event loop has run already.
    if (this.dead || (this.behind && how !== 'pause')) return;
    if (this.pauses++ === 0) this.stop();
    const suspends = how === 'suspend' && !this.clocks.isSuspended;
    if (suspends) this.clocks.suspend();
    if (how === 'stun') this.clocks.stop();
    this.scheduler.after(milliseconds, () => {
      if (suspends) {
        this.clocks.resume();
        this.resumedAt = this.scheduler.now;
        this.noteClocks();
      }
      if (how === 'stun') this.clocks.start();
      if (--this.pauses === 0) this.goOn();
    });
  }

  slew(milliseconds: number, factor: number): void {
    this.change(() => this.clocks.slew(factor));
    this.scheduler.after(milliseconds, () => this.change(() => this.clocks.slew(1 / factor)));
  }

  /** Its monotonic clock jumps forward, and loses that again within some milliseconds of true time, if there are any. */
  stumble(by: number, milliseconds: number): void {
    if (this.dead) return;
    this.hasStumbled = true;
    this.change(() => this.clocks.advance(by));
    // Timers that became due at once need a turn of the event loop.
    this.runsSince = this.scheduler.now;
    if (milliseconds <= by) return;
    const factor = 1 - by / milliseconds;
    this.change(() => this.clocks.slewMonotonic(factor));
    this.scheduler.after(milliseconds, () => this.change(() => this.clocks.slewMonotonic(1 / factor)));
    this.compareClocks(this.scheduler.now + milliseconds);
  }

  die(): void {
    this.dead = true;
    for (const { planned } of this.timers) planned?.cancel();
    this.timers.clear();
    this.inbox.length = 0;
  }

  private catchUp(): void {
    const { behind, clocks } = this;
    if (!behind || this.dead) return;
    const left = behind.monotonic - clocks.read().monotonic;
    if (left > 0) {
      this.scheduler.after(left / clocks.monotonicRate + TURN, () => this.catchUp());
      return;
    }
    this.behind = undefined;
    for (const action of this.outbox.splice(0)) action();
    if (--this.pauses === 0) this.goOn();
  }

  private stop(): void {
    this.stoppedAt = this.scheduler.now;
    for (const { planned } of this.timers) planned?.cancel();
  }

  private goOn(): void {
    if (this.dead) return;
    this.stoppedFor += this.scheduler.now - this.stoppedAt;
    this.runsSince = this.scheduler.now;
    for (const timer of [...this.timers].sort((a, b) => a.due - b.due)) this.plan(timer);
    // Input in the sockets is read after the timers that are due, and before anything that arrives from now on.
    if (this.inbox.length === 0 || this.catchingUp) return;
    this.catchingUp = true;
    this.scheduler.after(TURN, () => this.readOn());
  }

  private change(clocks: () => void): void {
    clocks();
    if (!this.isRunning) return;
    for (const timer of this.timers) {
      timer.planned?.cancel();
      this.plan(timer);
    }
  }

  private readOn(): void {
    this.catchingUp = false;
    if (!this.isRunning) return;
    this.inbox.shift()?.();
    if (this.inbox.length === 0) return;
    this.catchingUp = true;
    this.scheduler.after(0, () => this.readOn());
  }

  private plan(timer: PendingTimer): void {
    const left = timer.due - this.read().monotonic;
    const delay = left <= 0 ? 0 : left / this.clocks.monotonicRate + this.chance.fraction() * TIMER_LATENESS;
    timer.planned = this.scheduler.after(delay, () => {
      this.timers.delete(timer);
      timer.callback();
    });
  }
}

/** Like Node, reacts to the promises of each callback before it runs the next one. */
function runAll([first, ...others]: readonly (() => void)[]): void {
  first?.();
  for (const callback of others) {
    settlePromises();
    callback();
  }
}
