import { quorumOf } from './quorum.js';
import type { WatchedMaster } from './watched-master.js';

/** How one master is doing. */
export interface MasterStatus {
  /** Name of the master, without credentials. */
  readonly master: string;
  /**
   * - `voting`: its votes count
   * - `quarantined`: it may have lost locks, or its clock jumped, so its votes do not count for a while
   * - `silent`: it is connected and does not answer
   * - `down`: there is no connection
   * - `refused`: it is not a server that may vote, for example a replica, or, where it was asked, it refuses to write
   */
  readonly state: 'voting' | 'quarantined' | 'silent' | 'down' | 'refused';
  /** Why it does not vote. */
  readonly reason?: string;
  /** Milliseconds after which its quarantine ends at the latest. */
  readonly remaining?: number;
  /** Version of the server, where it says so. */
  readonly version?: string;
  /** Milliseconds in which it answered, where it was asked. */
  readonly latency?: number;
}

/** How the masters are doing. */
export interface Status {
  /** Number of masters that must vote. */
  readonly quorum: number;
  /** Whether that many can vote now. */
  readonly canVote: boolean;
  /** Each master, in the order in which they were given. */
  readonly masters: readonly MasterStatus[];
}

/** What is known of all masters without asking them. */
export function statusOf(masters: readonly WatchedMaster[]): Status {
  return summarize(masters.map(statusOfMaster));
}

/** What the masters amount to. */
export function summarize(masters: readonly MasterStatus[]): Status {
  const quorum = quorumOf(masters.length);
  return { quorum, canVote: masters.filter(({ state }) => state === 'voting').length >= quorum, masters };
}

function statusOfMaster(watched: WatchedMaster): MasterStatus {
  const { version, fault, quarantine } = watched.identity();
  const known = { master: watched.name, ...(version !== undefined && { version }) };
  const problem = watched.problem();
  if (fault !== undefined) return { ...known, state: 'refused', reason: fault };
  if (problem) return { ...known, state: 'down', reason: problem.reason };
  if (watched.isSilent) return { ...known, state: 'silent', reason: 'it leaves requests unanswered' };
  if (quarantine) return { ...known, state: 'quarantined', ...quarantine };
  return { ...known, state: 'voting' };
}
