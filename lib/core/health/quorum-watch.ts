import type { LockObserver } from '../observer.js';
import type { RedlockStatus } from './status.js';

/** The events after which a quorum may have been lost or restored. */
type Change =
  | ('masterLost' | 'masterFound' | 'masterSilent' | 'masterAnswersAgain')
  | ('masterQuarantined' | 'masterRefused' | 'masterVotesAgain');

/** Notices from the events of single masters when no lock can be taken any more, and when locks can be taken again. */
export class QuorumWatch implements Required<Pick<LockObserver, Change>> {
  /** Whether a quorum voted at the last check; `undefined` until one has voted. */
  private could: boolean | undefined;

  /**
   * @param status the present status, which must be there before the first event
   * @param observer receives `quorumLost` and `quorumRestored`
   */
  constructor(
    private readonly status: () => RedlockStatus,
    private readonly observer: LockObserver,
  ) {}

  readonly check = (): void => {
    const { canVote, masters } = this.status();
    // Until a quorum has voted once, nothing is lost: new masters vote after a while.
    if (this.could === undefined && !canVote) return;
    const could = this.could ?? true;
    this.could = canVote;
    if (could === canVote) return;
    const voting = masters.filter(({ state }) => state === 'voting').length;
    if (canVote) this.observer.quorumRestored?.(voting, masters.length);
    else this.observer.quorumLost?.(voting, masters.length);
  };

  readonly masterLost = this.check;
  readonly masterFound = this.check;
  readonly masterSilent = this.check;
  readonly masterAnswersAgain = this.check;
  readonly masterQuarantined = this.check;
  readonly masterRefused = this.check;
  readonly masterVotesAgain = this.check;
}
