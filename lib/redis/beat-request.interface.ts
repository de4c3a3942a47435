import type { MasterRequest } from '../core/master.interface.js';
import type { Announcement } from './guard/data-record.js';

/**
 * A heartbeat: the server checks its marker, returns its time and records an announced ttl. The restart guard sends it
 * in addition to the votes.
 */
export interface BeatRequest extends Announcement {
  /** Distinguishes the types of requests. */
  readonly op: 'beat';
  /** Always empty. */
  readonly keys: readonly string[];
  /** Milliseconds of quarantine for each millisecond of a ttl. */
  readonly factor: number;
}

/** All requests to a server. */
export type ServerRequest = MasterRequest | BeatRequest;
