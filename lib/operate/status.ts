import { quorumOf } from '../redlock/quorum.js';

/**
 * The state of one master.
 *
 * - `voting`: its votes count
 * - `quarantined`: it may have lost locks that are held, so it refuses to vote for a while
 * - `silent`: it is connected but does not answer
 * - `down`: there is no connection
 * - `refused`: it cannot vote until it or its settings are changed: it is a replica, it refuses the password or does not
 *   speak TLS, or it refused what a lock needs, such as every write, when it was asked last
 */
export type MasterState = 'voting' | 'quarantined' | 'silent' | 'down' | 'refused';

/** The status of one master. */
export interface MasterStatus {
  /** Name of the master, without credentials. */
  readonly master: string;
  /** Whether it votes, and if not, what keeps it from that. */
  readonly state: MasterState;
  /** Why it does not vote. Of one that votes: what it refuses all the same, such as extensions, and the missing permission. */
  readonly reason?: string;
  /** Milliseconds until its quarantine ends, by its last answer. */
  readonly remaining?: number;
  /** Version of the server, if it reports one. */
  readonly version?: string;
  /** Time in milliseconds until it answered, if it was probed. */
  readonly latency?: number;
}

/** The status of all masters. */
export interface RedlockStatus {
  /** Name of this process: the option `instance`. */
  readonly instance: string;
  /** Number of masters that must vote. */
  readonly quorum: number;
  /** Whether that many masters can vote now. */
  readonly canVote: boolean;
  /** The status of each master, in the order in which the masters were configured. */
  readonly masters: readonly MasterStatus[];
}

export function votingIn({ masters }: RedlockStatus): number {
  return masters.filter(({ state }) => state === 'voting').length;
}

// Milliseconds, at the latest, if only quarantines have to end. `undefined` if masters have to be repaired first.
export function quorumWithin({ masters, quorum }: RedlockStatus): number | undefined {
  const waits = masters.flatMap(({ state, remaining }) =>
    state === 'voting' ? [0] : remaining === undefined ? [] : [remaining],
  );
  return waits.sort((a, b) => a - b)[quorum - 1];
}

export function summarize(instance: string, masters: readonly MasterStatus[]): RedlockStatus {
  const quorum = quorumOf(masters.length);
  const voting = masters.filter(({ state }) => state === 'voting').length;
  return { instance, quorum, canVote: voting >= quorum, masters };
}
