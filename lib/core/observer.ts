import type { LockLostError } from './errors.js';
import type { Answer, Request } from './master.interface.js';

/** What somebody who keeps a log or counts events may want to hear. Called synchronously; must not throw. */
export interface Observer {
  /**
   * Somebody begins to acquire a lock; called in its asynchronous context. What is returned hears how it goes on.
   *
   * @param onHeld what a refusal is to whoever asks
   */
  acquiring?(resources: readonly string[], onHeld: OnHeld): AcquisitionObserver | undefined;
  /** A lock was lost while its holder relied on it. */
  lockLost?(error: LockLostError): void;
  /**
   * A master has answered, or was not asked because it is silent.
   *
   * @param milliseconds since it was asked
   */
  masterAnswered?(master: string, operation: Request['op'], answer: Answer, milliseconds: number): void;
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
  /** This process' own clock turned out to be behind: its locks end earlier by so many milliseconds. */
  clientClockLagged?(milliseconds: number): void;
  /** A ttl is cut until the masters that are missing have been told of it. All in milliseconds. */
  ttlCut?(wanted: number, used: number, missing: readonly string[]): void;
  /** A master that was silent answers again. */
  masterAnswersAgain?(master: string): void;
}

/** What a refusal is to whoever asks for a lock: an error, or one of two answers that it expects. */
export type OnHeld = 'fail' | 'skip';

/** How an acquisition went. */
export interface Progress {
  /** Rounds of questions to the masters. */
  readonly attempts: number;
  /** Milliseconds from the call to its outcome. */
  readonly taken: number;
  /** Milliseconds of that in which it asked nobody and waited: for its turn, or for a better moment. */
  readonly waited: number;
}

/** Hears of one acquisition, and of the lock that comes of it. */
export interface AcquisitionObserver {
  /** The lock was acquired. */
  granted?(progress: Progress): void;
  /** It was not, for this reason: an error of this library, or the reason of a signal. */
  failed?(error: unknown, progress: Progress): void;
  /**
   * The lock that was granted has been released, or lost.
   *
   * @param held for how many milliseconds
   */
  ended?(held: number, loss: LockLostError | undefined): void;
  /** Runs work that is done under the lock. */
  within?<T>(work: () => T): T;
}
