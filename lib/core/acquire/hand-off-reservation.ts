import { type AcquireRequest, type MasterReply, type Master, type ReplyCallback } from '../master.interface.js';

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
export class HandOffReservation {
  private answered: MasterReply | undefined;
  /** What to do with each refusal of another master, once the home master has answered. */
  private readonly refused: (() => void)[] = [];

  constructor(
    private readonly home: Master,
    private readonly toHome: AcquireRequest,
    private readonly elsewhere: AcquireRequest,
  ) {}

  ask(master: Master, reply: ReplyCallback): void {
    if (master !== this.home) {
      this.askUpTo(REPEATS, master, reply);
      return;
    }
    master.ask(this.toHome, (answer) => {
      this.answered = answer;
      reply(answer);
      for (const goOn of this.refused.splice(0)) goOn();
    });
  }

  private askUpTo(repeats: number, master: Master, reply: ReplyCallback): void {
    master.ask(this.elsewhere, (answer) => {
      const goOn = (): void => {
        // A withdrawn request has been followed by its release: a repetition would arrive after that.
        // Protocol 5.6
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
