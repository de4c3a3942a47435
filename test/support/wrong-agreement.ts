// Shorter ways to agree on a fencing token that look right and are not. For tests that must be able to fail.
import { type Draw, TokenAgreement } from '../../lib/core/fencing.js';
import type { Master } from '../../lib/core/master.interface.js';

/** What a protocol gets wrong on the side of the client. */
export type ClientFault =
  /** After the first round, any master confirms the largest number, whether or not it has drawn. */
  | 'confirms anywhere'
  /** A master whose answer was lost, or which was healed, is only asked to repeat what it never answered. */
  | 'never draws again'
  /** A master stays among those that have drawn although an extension set its key again. */
  | 'keeps healed masters'
  /** "At least my token" passes for "my token". */
  | 'adopts nothing'
  /** Each master draws in each round. Safe, but two that differ never meet. */
  | 'draws anew';

/** The agreement of the library with one rule less. */
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

  override beginExtension(): ReturnType<TokenAgreement['beginExtension']> {
    const heard = super.beginExtension();
    if (this.fault !== 'keeps healed masters' && this.fault !== 'never draws again') return heard;
    return (master, answer) => heard(master, answer.kind === 'granted' ? { kind: 'granted' } : answer);
  }

  override conclude(answers: readonly number[]): number | undefined {
    const { progress, fault, hasConcluded } = this;
    this.hasConcluded = true;
    const known = fault === 'adopts nothing' && hasConcluded;
    return super.conclude(known ? answers.map((answer) => Math.min(answer, progress)) : answers);
  }
}
