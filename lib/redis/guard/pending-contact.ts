import type { GuardedServer } from './guarded-server.interface.js';

/** Requests of one kind to one server, which may hang. */
export class PendingContact {
  /** When the first of them was sent, or the connection was last replaced. Monotonic, in milliseconds. */
  private since: number | undefined;

  constructor(private readonly server: Pick<GuardedServer, 'reconnect'>) {}

  get isUnderWay(): boolean {
    return this.since !== undefined;
  }

  begin(now: number): void {
    this.since ??= now;
  }

  end(): void {
    this.since = undefined;
  }

  /** Replaces the connection if nothing has arrived over it for so many milliseconds. */
  reconnectAfter(limit: number, now: number): void {
    if (this.since === undefined || now - this.since < limit) return;
    this.since = now;
    this.server.reconnect();
  }
}
