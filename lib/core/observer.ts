import type { LockLostError } from './errors.js';

/** What somebody who keeps a log or counts events may want to hear. Called synchronously; must not throw. */
export interface Observer {
  /** A lock was lost while its holder relied on it. */
  lockLost?(error: LockLostError): void;
  /** A master has left several requests unanswered: from now on it is only probed. */
  masterSilent?(master: string): void;
  /** The votes of a master do not count for a while, because it may have forgotten locks. */
  masterQuarantined?(master: string, reason: string, milliseconds: number): void;
  /** A master has lost its vote for as long as it is what it is: a replica, or a server that has a vote already. */
  masterRefused?(master: string, reason: string): void;
  /** The votes of a master that was quarantined or refused count again. */
  masterVotesAgain?(master: string): void;
  /** A master works, but is set up in a way that can cost locks. */
  masterAtRisk?(master: string, risk: string): void;
  /** A master that was silent answers again. */
  masterAnswersAgain?(master: string): void;
}
