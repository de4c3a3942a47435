import type { LockLostError } from './errors.js';
import type { MasterReply, MasterRequest } from './master.interface.js';

/** Receives events, for example to log or to count them. Called synchronously; must not throw. */
export interface LockObserver {
  /**
   * An acquisition begins. Called in the asynchronous context of the caller. The returned observer, if any, receives
   * the further events of this acquisition.
   *
   * @param onHeld what a refusal means to the caller
   */
  acquiring?(resources: readonly string[], onHeld: OnHeld): AcquisitionObserver | undefined;
  /** A lock was lost while its holder still relied on it. */
  lockLost?(error: LockLostError): void;
  /**
   * A master has answered, or was not asked because it is silent.
   *
   * @param milliseconds time since the request; `0` if the master was not asked
   */
  masterAnswered?(master: string, operation: MasterRequest['op'], answer: MasterReply, milliseconds: number): void;
  /** A master has left several requests unanswered. From now on, it is only probed. */
  masterSilent?(master: string): void;
  /** The votes of a master do not count for a while, because it may have lost locks. */
  masterQuarantined?(master: string, reason: string, milliseconds: number): void;
  /** A master has lost its vote until its role changes: it is a replica, or a server that already has a vote. */
  masterRefused?(master: string, reason: string): void;
  /** The votes of a master that was quarantined or refused count again. */
  masterVotesAgain?(master: string): void;
  /** A master works, but its configuration can cost locks. */
  masterAtRisk?(master: string, risk: string): void;
  /** The clock of this process turned out to be behind: its locks end this many milliseconds earlier. */
  clientClockLagged?(milliseconds: number): void;
  /** A ttl is cut until the missing masters know it. Both ttls are in milliseconds. */
  ttlCut?(wanted: number, used: number, missing: readonly string[]): void;
  /** The connection to a master was lost. It is reopened until that succeeds. */
  masterLost?(master: string, reason: string): void;
  /** There is a connection to a master again after it was lost. */
  masterFound?(master: string): void;
  /** Fewer masters than a quorum vote: no lock can be taken or extended. */
  quorumLost?(voting: number, masters: number): void;
  /** A quorum of masters votes again after it was lost. */
  quorumRestored?(voting: number, masters: number): void;
  /** A master that was silent answers again. */
  masterAnswersAgain?(master: string): void;
}

/** What a refusal means to the caller: an error (`fail`), or an expected outcome (`skip`). */
export type OnHeld = 'fail' | 'skip';

/** How an acquisition went. */
export interface AcquisitionProgress {
  /** Number of rounds of requests to the masters. */
  readonly attempts: number;
  /** Milliseconds from the call to its outcome. */
  readonly taken: number;
  /** Milliseconds of `taken` in which it only waited, for its turn or for a better moment to ask the masters. */
  readonly waited: number;
}

/** Receives the events of one acquisition and of the lock that results from it. */
export interface AcquisitionObserver {
  /** The lock was acquired. */
  granted?(progress: AcquisitionProgress): void;
  /** The lock was not acquired. `error` is an error of this library, or the reason of a signal. */
  failed?(error: unknown, progress: AcquisitionProgress): void;
  /**
   * The acquired lock was released or lost.
   *
   * @param held how long the lock was held, in milliseconds
   */
  ended?(held: number, loss: LockLostError | undefined): void;
  /** Runs the work that is done under the lock. */
  within?<T>(work: () => T): T;
}
