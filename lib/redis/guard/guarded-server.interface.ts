import type { ServerIdentity } from '../identity.js';
import type { MarkerChange } from './marker.js';

/** One server, as the guard uses it. */
export interface GuardedServer {
  readonly name: string;
  /** Whether its operator declares that it keeps each acknowledged write across restarts. */
  readonly isDurable: boolean;
  /** How much longer than its locks a quarantine has to last, in milliseconds; 0 for a single server. */
  readonly handover: number;
  /** Whether there is a connection over which the server can be asked. */
  readonly isConnected: boolean;
  /** Asks the server for its identity; `undefined` if it does not answer. */
  report(): Promise<ServerIdentity | undefined>;
  /**
   * Changes the marker, unless the marker or the server is no longer the one in the report.
   *
   * @returns whether the marker was changed; `undefined` if the server refused
   */
  mark(report: ServerIdentity, change: MarkerChange): Promise<boolean | undefined>;
  /**
   * Sends a small request that is checked like a vote, returns the server's time, and announces a ttl.
   *
   * @returns the largest ttl that was announced to every master; `undefined` if the server did not accept the request
   */
  beat(announcement: Announcement): Promise<number | undefined>;
  /** Called when the votes of the server begin to count. */
  onVoting(): void;
  /** Replaces a connection on which nothing arrives. */
  reconnect(): void;
}

export interface Announcement {
  /** The largest ttl in use, in milliseconds; `0` announces nothing. */
  readonly ttl: number;
  /** Whether to lengthen a running quarantine, because a lock from before it may have this ttl. */
  readonly lengthens: boolean;
  /** A ttl that was announced to every master, in milliseconds. */
  readonly known: number;
}
