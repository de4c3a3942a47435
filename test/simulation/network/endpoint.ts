import type { Chance } from '../engine/chance.js';
import type { MachineClock } from '../engine/machine-clock.js';
import type { Scheduler } from '../engine/scheduler.js';
import type { SimServer } from '../server/sim-server.js';
import type { Connection } from './connection.js';

/** How long a kernel takes to close the connections of a process that has ended, in milliseconds. */
const GONE_WITHIN = 2;

/** What a master has forgotten, in true time. */
export interface Losses {
  /** When it last forgot keys, or let them expire early. */
  at: number;
  /** Until when a holder could rely on one of the locks to which they belonged. */
  lockUntil: number;
}

/** A server, and what it and those before it have forgotten. */
export interface Place {
  readonly server: SimServer | undefined;
  readonly losses: Losses;
}

/** The address of a master: the server that answers there at the moment, and the connections to it. */
export class Endpoint {
  readonly connections = new Set<Connection>();
  /** The same object as of another address while both lead to one server. */
  losses: Losses = { at: -Infinity, lockUntil: -Infinity };
  /** The server on this machine while the address leads to the server of another master. */
  own: Place | undefined;
  /** When it last led to another server, possibly that of another master; in true time. */
  movedAt = -Infinity;
  /** Whether a release may have had no effect, so that its keys live until their ttl ends. */
  mayKeepKeys = false;
  server: SimServer | undefined;
  private pauses = 0;
  private readonly backlog: { readonly connection: Connection; readonly action: () => void }[] = [];

  constructor(
    readonly name: string,
    readonly index: number,
    readonly clock: MachineClock,
    private readonly scheduler: Scheduler,
    private readonly chance: Chance,
    server: SimServer,
  ) {
    this.server = server;
  }

  get isPaused(): boolean {
    return this.pauses > 0;
  }

  /**
   * Handles input from a connection: at once, or when the server resumes. The input is lost if the server is gone by
   * then.
   */
  receive(connection: Connection, action: () => void): void {
    if (!this.server) return;
    if (this.isPaused) this.backlog.push({ connection, action });
    else action();
  }

  /** The server hangs: it accepts connections and data, but does nothing. */
  pause(milliseconds: number): void {
    this.pauses++;
    this.scheduler.after(milliseconds, () => {
      if (--this.pauses === 0) this.goOn();
    });
  }

  /** The server is gone, with all commands that it has not run yet. */
  stop(): void {
    this.server = undefined;
    this.backlog.length = 0;
    for (const connection of [...this.connections]) connection.reset(this.chance.fraction() * GONE_WITHIN);
  }

  /** Sockets are read in any order; the input of one socket is read in its own order. */
  private goOn(): void {
    const order = new Map<Connection, number>();
    for (const { connection } of this.backlog) {
      if (!order.has(connection)) order.set(connection, this.chance.fraction());
    }
    const arrived = this.backlog.splice(0);
    arrived.sort((a, b) => (order.get(a.connection) as number) - (order.get(b.connection) as number));
    for (const { connection, action } of arrived) this.scheduler.after(0, () => this.receive(connection, action));
  }
}
