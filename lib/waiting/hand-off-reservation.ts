import type { First } from '../redlock/round.js';
import type { SendRequest } from '../redlock/quorum.js';
import type { Reply, RoundRequest, Server } from '../redlock/server.js';

// How often a master that refuses is asked again after the home master has granted.
const REPEATS = 2;

// The requests for a key that the home master has reserved for this process: to all masters at once. The previous
// holder's release may still be on its way to some of them. A master that refuses is therefore asked again once the
// home master has granted, with the same token and without a delay.
export class HandOffReservation {
  private answered: Reply | undefined;
  // What to do with each refusal of another master, once the home master has answered.
  private readonly refused: (() => void)[] = [];

  constructor(
    private readonly home: Server,
    private readonly toHome: RoundRequest,
    private readonly elsewhere: RoundRequest,
  ) {}

  ask(master: Server, reply: (answer: Reply) => void): void {
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

  private askUpTo(repeats: number, master: Server, reply: (answer: Reply) => void): void {
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

export function askReserved(home: Server): NonNullable<First['together']> {
  return (toHome, elsewhere): SendRequest => {
    const reservation = new HandOffReservation(home, toHome, elsewhere);
    return (master, reply) => reservation.ask(master, reply);
  };
}
