import type { Clock, Timer } from '../clock.js';
import type { LockObserver } from '../observer.js';
import { type RedlockStatus, votingIn } from './status.js';

type Change =
  | ('masterLost' | 'masterFound' | 'masterSilent' | 'masterAnswersAgain')
  | ('masterQuarantined' | 'masterRefused' | 'masterVotesAgain');

// Derives from the events of single masters when no lock can be taken any more, and when locks can be taken.
export class QuorumWatch implements Required<Pick<LockObserver, Change>> {
  // At the last check; `undefined` before the first status.
  private could: boolean | undefined;

  // `status` must be there before the first event.
  constructor(
    private readonly status: () => RedlockStatus,
    private readonly observer: LockObserver,
  ) {}

  get hasBegun(): boolean {
    return this.could !== undefined;
  }

  // Nothing counts as a change before: masters have to connect first. Idempotent.
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

// In milliseconds. A master that hangs is silent after its third unanswered request.
const CHECK_INTERVAL = 5_000;

// So that an application that takes no lock also notices a master that hangs or refuses writes, and one that works
// again. The connection to a master that hangs stays open.
export class IdleCheck {
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ask: () => void,
  ) {}

  begin(): void {
    this.ask();
    this.timer = this.clock.schedule(CHECK_INTERVAL, () => this.begin()).unref();
  }

  end(): void {
    this.timer?.cancel();
  }
}
