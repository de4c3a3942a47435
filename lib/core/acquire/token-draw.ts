import type { Clock } from '../clock.js';
import { TokenAgreement } from '../fencing.js';
import { microsecondsOf } from '../wall-clock.js';
import type { Master, MasterReply, MasterRequest } from '../master.interface.js';
import { QuorumCall, quorumOf, type SendRequest } from './quorum-call.js';

/** A placeholder: in a round of draws, every master gets a request of its own. */
const UNUSED: MasterRequest = Object.freeze({ op: 'inspect', keys: [] });

interface TokenDrawContext {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  readonly keys: readonly string[];
  readonly token: string;
  /** Time limit of a round, in milliseconds. */
  readonly masterTimeout: number;
  /** Milliseconds for which the lock can still be relied on. */
  readonly remaining: () => number;
}

/** Draws the fencing token of one lock: rounds of requests to all masters until a quorum agrees. */
export class TokenDraw {
  private readonly agreement: TokenAgreement;

  constructor(private readonly context: TokenDrawContext) {
    this.agreement = new TokenAgreement(quorumOf(context.masters.length), context);
  }

  /** An extension begins. Returns a function that receives the replies to it. */
  beginExtension(): (master: Master, reply: MasterReply) => void {
    return this.agreement.beginExtension();
  }

  /**
   * Runs as many rounds as an agreement needs. A larger number is progress, so another round follows at once.
   *
   * @returns `undefined` if a round brought neither an agreement nor progress, or if the validity ended
   */
  async run(atLeast: number): Promise<number | undefined> {
    const { agreement, context } = this;
    agreement.demand(atLeast);
    let agreed = agreement.agreed;
    while (agreed === undefined) {
      const before = agreement.progress;
      const { fences } = await this.round();
      agreed = agreement.conclude(fences);
      if (agreed === undefined && (agreement.progress === before || context.remaining() <= 0)) return undefined;
    }
    return agreed;
  }

  private round(): Promise<QuorumCall> {
    const { masters, clock, masterTimeout, remaining } = this.context;
    // So that later locks start higher even if the counters were lost. A server's clock never lowers it, because a server that
    // is behind would move tokens back.
    // Protocol 9.4
    const floor = microsecondsOf(clock, 'fencing tokens');
    const send: SendRequest = (master, reply) => {
      const { request, judge } = this.agreement.drawFrom(master, floor);
      master.ask(request, (answer) => reply(judge(answer)));
    };
    const timeout = Math.min(masterTimeout, Math.max(remaining(), 0));
    return new QuorumCall({ masters, request: UNUSED, clock, timeout, send }).decided;
  }
}
