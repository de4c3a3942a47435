import type { Endpoint } from './network/endpoint.js';
import type { Fault, Schedule } from './schedule.js';
import type { SimNode } from './node.js';

/** A gap that a clock guard can see for sure, in milliseconds: more than what messages take. */
const VISIBLE_JUMP = 2_000;
/** Rates of clocks that a corrected clock may have: more than that looks like a jump sooner or later. */
const QUARTZ = 500e-6;

/**
 * Which assumptions of the protocol a run has broken so far, in words. While none is, mutual exclusion is demanded.
 *
 * Only the world knows: what a process has noticed of a fault is asked of the library itself.
 */
export class Assumptions {
  readonly broken = new Set<string>();
  /** Whether clocks run so alike that nobody takes one for a clock that was set. */
  readonly ratesAreNormal: boolean;
  private readonly suspended = new Set<number>();
  private readonly setBack = new Set<number>();
  private readonly setForward = new Set<number>();
  private serverJumped = false;

  constructor(
    { servers, processes, faults }: Schedule,
    private readonly guarded: boolean,
    driftFactor: number,
  ) {
    const rates = [...servers, ...processes].map(({ rate }) => rate);
    const apart = Math.max(...rates) - Math.min(...rates);
    this.ratesAreNormal = apart <= QUARTZ;
    if (apart > driftFactor) this.broken.add('clocks run at rates that differ by more than driftFactor');
    const stalls = faults.some((fault) => 'lasts' in fault && fault.lasts > 1_000);
    this.slowSamples = stalls;
  }

  private readonly slowSamples: boolean;

  /** To be called before the fault happens. */
  note(fault: Fault, endpoint: Endpoint | undefined, nodes: readonly SimNode[]): void {
    switch (fault.kind) {
      case 'crash':
        if (fault.data !== 'kept' && !this.guarded)
          this.broken.add('a master lost data, and there is no restart guard');
        return;
      case 'promote':
        if (!this.guarded) this.broken.add('a replica was promoted, and there is no restart guard');
        // What is sent on the word of one server reaches another.
        else if (fault.connections === 'kept' && endpoint && nodes.some((node) => node.isRecognizing(endpoint))) {
          this.broken.add('a server was replaced while it was recognized, over a connection that survived');
        }
        return;
      case 'flush':
        if (!this.guarded) this.broken.add('FLUSHALL, and there is no restart guard');
        else if (!this.isKnownToAll(endpoint, nodes)) this.broken.add('FLUSHALL before everybody knew the master');
        return;
      case 'evict':
        this.broken.add('a master dropped a key that was held');
        return;
      case 'serverJump':
        this.noteServerJump(fault.by, endpoint, nodes);
        return;
      case 'suspend':
        this.suspended.add(fault.process);
        this.noteClocks(fault.process);
        return;
      case 'wallJump':
        (fault.by > 0 ? this.setForward : this.setBack).add(fault.process);
        this.noteClocks(fault.process);
        return;
      // These cost an answer, and no promise depends on one.
      case 'scriptFlush':
      case 'oom':
      case 'readonly':
      case 'hang':
      case 'partition':
      case 'cut':
      case 'slow':
      case 'pause':
      case 'die':
    }
  }

  private noteServerJump(by: number, endpoint: Endpoint | undefined, nodes: readonly SimNode[]): void {
    if (by <= 0) return;
    this.serverJumped = true;
    for (const process of this.setForward) this.noteClocks(process);
    if (!this.guarded) this.broken.add(`a master's clock was set forward, and there is no clock guard`);
    else if (by < VISIBLE_JUMP) this.broken.add(`a master's clock was set forward by less than a delay can explain`);
    else if (this.slowSamples) this.broken.add(`a master's clock was set forward while answers took long`);
    else if (!this.isKnownToAll(endpoint, nodes)) {
      this.broken.add(`a master's clock was set forward before everybody knew the master`);
    }
  }

  private noteClocks(process: number): void {
    if (this.suspended.has(process) && this.setBack.has(process)) {
      this.broken.add('a machine was suspended, and its wall clock set back');
    }
    if (this.serverJumped && this.setForward.has(process)) {
      this.broken.add(`the wall clocks of a master and of a client were set forward`);
    }
  }

  /** Who meets a master for the first time cannot know what it was before. */
  private isKnownToAll(endpoint: Endpoint | undefined, nodes: readonly SimNode[]): boolean {
    const run = endpoint?.server?.run;
    return run !== undefined && nodes.every((node) => node.process.isDead || node.knows(endpoint as Endpoint, run));
  }
}
