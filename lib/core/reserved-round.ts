import { type AcquireRequest, type Answer, type Master, type Reply } from './master.interface.js';

/** How often a master that refuses is asked again after the home master has granted. */
const REPEATS = 2;

/**
 * The requests for a key that the home master has reserved for this process. They go to all masters at once, without
 * waiting for the home master.
 *
 * The previous holder released the key there last, but its release may still be on its way to another master. A master
 * that refuses is therefore asked again once the home master has granted, with the same token and without a delay: the
 * previous holder's key is about to disappear. If the home master refuses, no master is asked again.
 */
export class ReservedRound {
  private answered: Answer | undefined;
  /** What to do with each refusal of another master, once the home master has answered. */
  private readonly refused: (() => void)[] = [];

  constructor(
    private readonly gate: Master,
    private readonly atGate: AcquireRequest,
    private readonly elsewhere: AcquireRequest,
  ) {}

  ask(master: Master, reply: Reply): void {
    if (master !== this.gate) {
      this.askUpTo(REPEATS, master, reply);
      return;
    }
    master.ask(this.atGate, (answer) => {
      this.answered = answer;
      reply(answer);
      for (const goOn of this.refused.splice(0)) goOn();
    });
  }

  private askUpTo(repeats: number, master: Master, reply: Reply): void {
    master.ask(this.elsewhere, (answer) => {
      const goOn = (): void => {
        // A withdrawn request has been followed by its release: a repetition would arrive after that.
        const isWorthIt = this.answered?.kind === 'granted' && repeats > 0 && !this.elsewhere.withdrawn;
        if (isWorthIt) this.askUpTo(repeats - 1, master, reply);
        else reply(answer);
      };
      if (answer.kind !== 'held') reply(answer);
      else if (this.answered) goOn();
      else this.refused.push(goOn);
    });
  }
}
