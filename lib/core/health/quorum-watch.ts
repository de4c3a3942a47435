import type { LockObserver } from '../observer.js';
import { type RedlockStatus, votingIn } from './status.js';

/** The events after which a quorum may have been lost or restored. */
type Change =
  | ('masterLost' | 'masterFound' | 'masterSilent' | 'masterAnswersAgain')
  | ('masterQuarantined' | 'masterRefused' | 'masterVotesAgain');

/** Notices from the events of single masters when no lock can be taken any more, and when locks can be taken. */
export class QuorumWatch implements Required<Pick<LockObserver, Change>> {
  /** Whether a quorum voted at the last check; `undefined` before the first status. */
  private could: boolean | undefined;

  /**
   * @param status the present status, which must be there before the first event
   * @param observer receives `firstStatus`, `quorumLost` and `quorumRestored`
   */
  constructor(
    private readonly status: () => RedlockStatus,
    private readonly observer: LockObserver,
  ) {}

  /** Whether the first status was reported. */
  get hasBegun(): boolean {
    return this.could !== undefined;
  }

  /** Reports the first status. Nothing counts as a change before: masters have to connect first. Idempotent. */
  begin(): void {
    if (this.hasBegun) return;
    const status = this.status();
    this.could = status.canVote;
    this.observer.firstStatus?.(status);
  }

  readonly check = (): void => {
    if (this.could === undefined) return;
    const status = this.status();
    const { canVote, masters } = status;
    if (this.could === canVote) return;
    this.could = canVote;
    const voting = votingIn(status);
    if (canVote) this.observer.quorumRestored?.(voting, masters.length, status);
    else this.observer.quorumLost?.(voting, masters.length, status);
  };

  readonly masterLost = this.check;
  readonly masterFound = this.check;
  readonly masterSilent = this.check;
  readonly masterAnswersAgain = this.check;
  readonly masterQuarantined = this.check;
  readonly masterRefused = this.check;
  readonly masterVotesAgain = this.check;
}
