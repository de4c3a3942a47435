import type { SimServer } from '../server/sim-server.js';
import type { World } from '../world.js';
import { Violation } from './violation.js';

/** A server counts whole milliseconds, of true time in a run whose clocks are right. */
const ROUNDING = 2;

/**
 * What the restart gate promises of one master. It votes when the longest ttl has passed since it was first asked in its run,
 * or since its marker was lost: not earlier, and not later. The marker of its run is never changed.
 *
 * The servers say which requests have passed the gate. When they were to pass follows from true time alone.
 */
export class Votes {
  private readonly scheduler;

  constructor(
    private readonly world: World,
    /** The smallest and the largest `maxTtl` of all processes. A process whose own is larger uses no longer ttl yet. */
    private readonly shortest: number,
    private readonly longest: number,
  ) {
    ({ scheduler: this.scheduler } = world);
  }

  /** A request was refused by the gate of a server, or has passed it. */
  noteGate(server: SimServer, hasPassed: boolean): void {
    const { now } = this.scheduler;
    const isAsked = server.askedAt !== undefined;
    const askedAt = (server.askedAt ??= now);
    const { rate } = server.clock;
    const waited = (now - askedAt) * rate;
    if (!this.isSound) return;
    if (hasPassed && (!isAsked || waited < this.shortest - ROUNDING)) {
      this.fail('no master votes early', `${server.run} votes ${waited.toFixed(0)} ms after it was first asked`);
    }
    if (!hasPassed && waited > this.longest + ROUNDING) {
      this.fail('a quarantine ends', `${server.run} does not vote ${waited.toFixed(0)} ms after it was first asked`);
    }
  }

  /** The marker of a server is about to be written: of this run there was a marker before, or there was none. */
  noteMarker(server: SimServer, before: string | undefined): void {
    const { sometimes } = this.world;
    if (before === undefined) sometimes.reached('a marker was written where there was none');
    else if (before !== server.run) sometimes.reached('the marker of an earlier run was replaced');
    else if (this.isSound) this.fail('the marker of a run is never changed', `${server.run} has one already`);
  }

  /** The wait goes by the clock of the server, and a connection ends with the server. */
  private get isSound(): boolean {
    const { assumptions, inflicted } = this.world;
    return assumptions.broken.size === 0 && !inflicted.includes('serverJump');
  }

  private fail(property: Violation['property'], message: string): never {
    throw new Violation(property, this.scheduler.now, message);
  }
}
