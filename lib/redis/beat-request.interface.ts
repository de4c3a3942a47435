import type { Request } from '../core/master.interface.js';
import type { Announcement } from './guard/data-identity.js';

/** Check the marker, tell the time, and announce a ttl: what the restart guard asks of a server beside the votes. */
export interface BeatRequest extends Announcement {
  /** Tells requests apart. */
  readonly op: 'beat';
  /** None. */
  readonly keys: readonly string[];
  /** Milliseconds of quarantine for each millisecond of a ttl. */
  readonly factor: number;
}

/** What a server can be asked. */
export type ServerRequest = Request | BeatRequest;
