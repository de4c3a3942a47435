import type { LockLostError } from './errors.js';

/** What somebody who keeps a log or counts events may want to hear. Called synchronously; must not throw. */
export interface Observer {
  /** A lock was lost while its holder relied on it. */
  lockLost?(error: LockLostError): void;
  /** A master has left several requests unanswered: from now on it is only probed. */
  masterSilent?(master: string): void;
  /** A master that was silent answers again. */
  masterAnswersAgain?(master: string): void;
}
