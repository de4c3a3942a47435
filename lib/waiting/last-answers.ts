import type { Clock } from '../redlock/clock.js';
import type { MasterReport } from '../redlock/errors.js';
import { NOT_ASKED } from '../masters/master.interface.js';
import type { Reply } from '../redlock/server.js';
import { type QuorumCall, type Outcome, quorumOf } from '../redlock/quorum.js';
import { TimeLimit } from '../redlock/time-limit.js';
import type { CircuitBreakerMaster } from '../masters/circuit-breaker-master.js';

// The last answers of the masters to a refused acquisition: where the keys are held, and where that is unknown.
export class LastAnswers {
  // Later attempts may have asked only one of the masters.
  private readonly wide: QuorumCall | undefined;

  constructor(
    private readonly masters: readonly CircuitBreakerMaster[],
    private readonly last: QuorumCall,
    before: LastAnswers | undefined,
  ) {
    const askedAll = masters.every((master) => last.hasAsked(master));
    this.wide = askedAll ? last : before?.wide;
  }

  get outcome(): Outcome {
    return this.last.outcome;
  }

  // Milliseconds, if the keys are not extended; `undefined` if too few masters reported a time.
  get freeAfter(): number | undefined {
    return this.last.freeAfter;
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
    if (!wide?.isUncertain || this.isHeld) return;
    const limit = new TimeLimit({ clock, limit: wide.timeLeft, end: () => wide.giveUp(limit.blocked) });
    await new Promise<void>((resolve) => {
      cancelled(resolve);
      void wide.complete().then(resolve);
    });
    limit.cancel();
  }

  private answerOf(master: CircuitBreakerMaster): Reply | undefined {
    const { last, wide } = this;
    if (last === wide || last.hasAsked(master)) return last.answerOf(master);
    // An earlier answer does not count if the master has become unreachable or silent since.
    if (!wide) return undefined;
    return master.problem() ?? (master.isOpen ? NOT_ASKED : wide.answerOf(master));
  }

  private isMissing(master: CircuitBreakerMaster, answer: Reply | undefined): boolean {
    return answer ? answer.kind === 'timeout' : this.wide !== undefined || this.last.hasAsked(master);
  }

  private mayVote(master: CircuitBreakerMaster, answer: Reply | undefined): boolean {
    return answer ? answer.kind === 'granted' || answer.kind === 'held' : master.isUsable;
  }
}
