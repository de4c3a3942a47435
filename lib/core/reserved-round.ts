import { type AcquireRequest, type Answer, type Master, type Reply } from './master.interface.js';

/** So often a master that refuses is asked again after the gate has granted. */
const REPEATS = 2;

/**
 * How a process asks for a key that its gate keeps for it: all masters at once, without waiting for the gate.
 *
 * The key was released there last, but the release may still be on its way to another master. Those that refuse are
 * therefore asked again once the gate has granted, with the same token and at once: the old holder's key is about to
 * go. A gate that refuses ends that.
 */
export class ReservedRound {
  private answered: Answer | undefined;
  /** What is done with refusals when the gate has answered. */
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
        // What has been withdrawn was followed by its release already: asked again, it would come after it.
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
