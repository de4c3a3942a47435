import { type Clock, elapsedSince, type Instant } from '../clock.js';
import type { MasterReport } from '../errors.js';
import { type MasterReply, NOT_ASKED } from '../master.interface.js';
import { type QuorumCall, type Outcome, quorumOf } from './quorum-call.js';
import type { CircuitBreakerMaster } from '../health/circuit-breaker-master.js';

export interface FailedAttempt {
  readonly quorumCall: QuorumCall;
  readonly since: Instant;
  // Milliseconds from `since` for which its answers count.
  readonly timeout: number;
}

// The last answers of the masters to a refused acquisition: where the keys are held, and where that is unknown.
export class LastAnswers {
  // Later attempts may have asked only one of the masters.
  private readonly wide: FailedAttempt | undefined;

  constructor(
    private readonly masters: readonly CircuitBreakerMaster[],
    private readonly last: FailedAttempt,
    before: LastAnswers | undefined,
  ) {
    const askedAll = masters.every((master) => last.quorumCall.hasAsked(master));
    this.wide = askedAll ? last : before?.wide;
  }

  get outcome(): Outcome {
    return this.last.quorumCall.outcome;
  }

  // Milliseconds, if the keys are not extended; `undefined` if too few masters reported a time.
  get freeAfter(): number | undefined {
    return this.last.quorumCall.freeAfter;
  }

  get report(): readonly MasterReport[] {
    return this.masters.map((master) => ({ master: master.name, answer: this.answerOf(master) }));
  }

  // Otherwise, too few masters can vote. While an answer is missing, a quorum of masters must report another token,
  // because a key on a minority may just as well be left over from a dead holder.
  // Protocol 4.6
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

  // Waits only if the missing answers make a difference and their time has not passed.
  async settle(clock: Clock, cancelled: (cancel: () => void) => void): Promise<void> {
    const { wide } = this;
    if (!wide?.quorumCall.isUncertain || this.isHeld) return;
    const { quorumCall } = wide;
    const giveUp = (): void => quorumCall.giveUp();
    const left = wide.timeout - elapsedSince(clock, wide.since);
    const timer = clock.schedule(Math.max(0, left), () => clock.afterInput(giveUp));
    await new Promise<void>((resolve) => {
      cancelled(resolve);
      void quorumCall.complete().then(resolve);
    });
    timer.cancel();
  }

  private answerOf(master: CircuitBreakerMaster): MasterReply | undefined {
    const { last, wide } = this;
    if (last === wide || last.quorumCall.hasAsked(master)) return last.quorumCall.answerOf(master);
    // An earlier answer does not count if the master has become unreachable or silent since.
    if (!wide) return undefined;
    return master.problem() ?? (master.isOpen ? NOT_ASKED : wide.quorumCall.answerOf(master));
  }

  private isMissing(master: CircuitBreakerMaster, answer: MasterReply | undefined): boolean {
    return answer ? answer.kind === 'timeout' : this.wide !== undefined || this.last.quorumCall.hasAsked(master);
  }

  private mayVote(master: CircuitBreakerMaster, answer: MasterReply | undefined): boolean {
    return answer ? answer.kind === 'granted' || answer.kind === 'held' : master.isUsable;
  }
}
