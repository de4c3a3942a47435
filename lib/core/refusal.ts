import { type Clock, elapsedSince, type Instant } from './clock.js';
import type { MasterReport } from './errors.js';
import { type Answer, NOT_ASKED } from './master.interface.js';
import { type Ballot, type Outcome, quorumOf } from './quorum.js';
import type { WatchedMaster } from './watched-master.js';

/** A failed attempt. */
export interface FailedAttempt {
  readonly ballot: Ballot;
  readonly since: Instant;
  /** Milliseconds from `since` for which its answers count. */
  readonly timeout: number;
}

/** What the masters said last to an acquisition that failed: which of them hold the keys, and which cannot tell. */
export class Refusal {
  /** The last attempt that asked all masters: afterwards only one may have been asked again and again. */
  private readonly wide: FailedAttempt | undefined;

  constructor(
    private readonly masters: readonly WatchedMaster[],
    private readonly last: FailedAttempt,
    before: Refusal | undefined,
  ) {
    const askedAll = masters.every((master) => last.ballot.hasAsked(master));
    this.wide = askedAll ? last : before?.wide;
  }

  /** How the last attempt ended. */
  get outcome(): Outcome {
    return this.last.ballot.outcome;
  }

  /** Milliseconds after which the keys could be free, if nobody extends; where masters told. */
  get freeAfter(): number | undefined {
    return this.last.ballot.freeAfter;
  }

  /** The last word of each master. */
  get report(): readonly MasterReport[] {
    return this.masters.map((master) => ({ master: master.name, answer: this.answerOf(master) }));
  }

  /**
   * Whether another token holds the keys; otherwise too few masters can vote. A quorum has to say so: while a master
   * leaves its answer open, a key on a minority may just as well be what a dead holder has left.
   */
  get isHeld(): boolean {
    const { masters } = this;
    if (this.outcome === 'granted') return false;
    const answers = masters.map((master) => this.answerOf(master));
    const held = answers.filter((answer) => answer?.kind === 'held').length;
    const voters = masters.filter((master, i) => this.mayVote(master, answers[i])).length;
    const isOpen = masters.some((master, i) => this.isMissing(master, answers[i]));
    const quorum = quorumOf(masters.length);
    return held >= quorum || (held > 0 && voters >= quorum && !isOpen);
  }

  /**
   * Waits for the answers that were not waited for, where they make a difference and their time has not passed.
   *
   * @param cancelled takes a function that ends it now
   */
  async settle(clock: Clock, cancelled: (cancel: () => void) => void): Promise<void> {
    const { wide } = this;
    if (!wide?.ballot.isUncertain || this.isHeld) return;
    const { ballot } = wide;
    const giveUp = (): void => ballot.giveUp();
    const left = wide.timeout - elapsedSince(clock, wide.since);
    const timer = clock.schedule(Math.max(0, left), () => clock.afterInput(giveUp));
    await new Promise<void>((resolve) => {
      cancelled(resolve);
      void ballot.complete().then(resolve);
    });
    timer.cancel();
  }

  private answerOf(master: WatchedMaster): Answer | undefined {
    const { last, wide } = this;
    if (last === wide || last.ballot.hasAsked(master)) return last.ballot.answerOf(master);
    // What it said before the last attempt is no answer of a master that has gone since.
    if (!wide) return undefined;
    return master.problem() ?? (master.isSilent ? NOT_ASKED : wide.ballot.answerOf(master));
  }

  private isMissing(master: WatchedMaster, answer: Answer | undefined): boolean {
    return answer ? answer.kind === 'timeout' : this.wide !== undefined || this.last.ballot.hasAsked(master);
  }

  private mayVote(master: WatchedMaster, answer: Answer | undefined): boolean {
    return answer ? answer.kind === 'granted' || answer.kind === 'held' : master.isUsable;
  }
}
