// Incorrect shortcuts to agree on a fencing token. They prove that tests can fail.
import { type Draw, TokenAgreement } from '../../lib/fencing/fencing-token.js';
import type { Master } from '../../lib/masters/master.interface.js';

/** The fault of a protocol on the side of the client. */
export type ClientFault =
  /** After the first round, any master confirms the largest number, whether or not it has drawn. */
  | 'confirms anywhere'
  /** A master whose answer was lost, or that was healed, is asked to repeat a number instead of drawing again. */
  | 'never draws again'
  /** A master still counts as having drawn after its key was set again. */
  | 'keeps healed masters'
  /** An answer of at least the client's token counts as that token. */
  | 'adopts nothing'
  /** Each master draws in each round. This is safe, but two masters that differ never agree. */
  | 'draws anew';

/** The agreement of the library without one of its rules. */
export class WrongAgreement extends TokenAgreement {
  private readonly asked = new Set<Master>();
  private hasConcluded = false;

  constructor(
    private readonly fault: ClientFault,
    ...own: ConstructorParameters<typeof TokenAgreement>
  ) {
    super(...own);
  }

  override drawFrom(master: Master, floor: number): Draw {
    const draw = super.drawFrom(master, floor);
    const { request } = draw;
    const { fault, progress } = this;
    const wasAsked = this.asked.has(master);
    this.asked.add(master);
    const repeats =
      (fault === 'confirms anywhere' && this.hasConcluded) ||
      (fault === 'never draws again' && wasAsked && progress > 0);
    if (repeats) return { ...draw, request: { ...request, isFirst: false, atLeast: progress } };
    return fault === 'draws anew' ? { ...draw, request: { ...request, isFirst: true } } : draw;
  }

  protected override situationOf(master: Master): ReturnType<TokenAgreement['situationOf']> {
    const situation = super.situationOf(master);
    const isBlind = this.fault === 'keeps healed masters' || this.fault === 'never draws again';
    return isBlind ? { ...situation, timesSetAgain: 0 } : situation;
  }

  override conclude(answers: readonly number[]): number | undefined {
    const { progress, fault, hasConcluded } = this;
    this.hasConcluded = true;
    const known = fault === 'adopts nothing' && hasConcluded;
    return super.conclude(known ? answers.map((answer) => Math.min(answer, progress)) : answers);
  }
}
