import type { Chance } from '../engine/chance.js';
import type { MachineClock } from '../engine/machine-clock.js';
import type { Scheduler } from '../engine/scheduler.js';
import type { SimServer } from '../server/sim-server.js';
import type { Connection } from './connection.js';

/** How long a kernel takes to tell its peers that a process is gone, in milliseconds. */
const GONE_WITHIN = 2;

/** The address of a master: whatever server answers there, and the connections to it. */
export class Endpoint {
  readonly connections = new Set<Connection>();
  /** When it last forgot keys, or let them expire early; in true time. */
  lostAt = -Infinity;
  /** The same where one of the keys was that of a lock, and until when that could be relied on. */
  lostLockAt = -Infinity;
  lostLockUntil = -Infinity;
  /** Whether anything has happened to it after which it may have to wait before it votes. */
  mayBeYoung = false;
  /** When it last led to another server, which may be the one of another master; in true time. */
  movedAt = -Infinity;
  /** Whether a release may not have taken effect: what it should have deleted lives until its ttl ends. */
  mayKeepKeys = false;
  /** `undefined` while nothing listens. */
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

  /** What arrived over a connection: now, or when the server goes on. Lost if the server is gone by then. */
  receive(connection: Connection, action: () => void): void {
    if (!this.server) return;
    if (this.isPaused) this.backlog.push({ connection, action });
    else action();
  }

  /** The server hangs: it accepts connections and data, and does nothing. */
  pause(milliseconds: number): void {
    this.pauses++;
    this.scheduler.after(milliseconds, () => {
      if (--this.pauses === 0) this.goOn();
    });
  }

  /** The server is gone, with everything that was not carried out yet. */
  stop(): void {
    this.server = undefined;
    this.backlog.length = 0;
    for (const connection of [...this.connections]) connection.reset(this.chance.fraction() * GONE_WITHIN);
  }

  /** Sockets are read in any order; what came over one of them, in its own. */
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
