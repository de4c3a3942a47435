import type { Clock } from '../redlock/clock.js';
import type { Held, HeldKeys } from './held.js';
import { hash } from '../settings/keyspace.js';
import type { DrawRequest, GrantedReply, Master, MasterReply } from '../masters/master.interface.js';
import { type Reply, TIMED_OUT } from '../redlock/server.js';
import { RedlockConfigError } from '../settings/config.error.js';
import { QuorumCall, quorumOf, type SendRequest } from '../redlock/quorum.js';

// Between two attempts to agree, at most this share of the ttl passes.
const RETRY_AFTER = 1 / 10;

// Attempts to agree on the token are repeated until the lock ends.
export class FencingToken {
  private readonly draw: TokenDraw;
  private agreed: Promise<number> | undefined;
  private goOn: (() => void) | undefined;

  constructor(private readonly held: Held) {
    this.draw = new TokenDraw(held);
    held.onEnd(() => this.goOn?.());
  }

  get value(): Promise<number> {
    this.agreed ??= this.agree().catch((error: unknown) => {
      // A later call may succeed.
      this.agreed = undefined;
      throw error;
    });
    return this.agreed;
  }

  // Absent before the masters have agreed.
  get drawn(): number | undefined {
    return this.draw.agreed;
  }

  private async agree(): Promise<number> {
    const { held, draw } = this;
    const { random } = held.context;
    for (;;) {
      held.throwIfLost();
      const token = await draw.run();
      // An agreement that is reached after the end of the validity does not count.
      held.throwIfLost();
      if (token !== undefined) return token;
      await this.pause(held.ttl * RETRY_AFTER * random.fraction());
    }
  }

  private pause(delay: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.held.context.clock.schedule(delay, resolve);
      this.goOn = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

// On each master. Memory stays bounded, whatever the number of keys.
// Protocol 9.1
const COUNTERS = 4_096;

// Keys that share a counter merely skip numbers.
export function countersOf(keys: readonly string[]): readonly number[] {
  return keys.map((key) => hash(key) % COUNTERS);
}

export interface Draw {
  readonly request: DrawRequest;
  // Returns a timeout if the draw has become worthless in the meantime.
  readonly judge: (answer: MasterReply) => MasterReply;
}

interface Situation {
  // Of the server.
  readonly run: string | undefined;
  // As `HeldKeys` says.
  readonly timesSetAgain: number;
}

// A token stands when a quorum of masters that have drawn for this lock answers exactly that number. Any later lock has
// a quorum, too, so one of these masters draws a larger number for it. Therefore, a master draws once and then only
// repeats its number, unless its key was set again or it runs anew: then another holder may have drawn there. A master that
// has lost its counters goes on above its clock.
// @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
export class TokenAgreement {
  private readonly drawn = new Map<Master, Situation>();
  private largest = 0;
  private token: number | undefined;

  constructor(
    private readonly quorum: number,
    private readonly owned: Pick<HeldKeys, 'keys' | 'token' | 'timesSetAgain' | 'mayBeSet'>,
  ) {}

  get agreed(): number | undefined {
    return this.token;
  }

  get progress(): number {
    return this.largest;
  }

  // Protocol 9.1
  drawFrom(master: Master, since: number): Draw {
    const { keys, token } = this.owned;
    const now = this.situationOf(master);
    const { run, timesSetAgain } = now;
    const before = this.drawn.get(master);
    // Protocol 9.2 and 9.5
    const isFirst = !before || before.run !== run || before.timesSetAgain !== timesSetAgain; // @mutant nothing-drawn
    return {
      request: { op: 'draw', keys, token, counters: countersOf(keys), atLeast: this.largest, isFirst, since },
      judge: (answer) => {
        if (answer.kind !== 'granted') return answer;
        const then = this.situationOf(master);
        const isSame = then.run === run && then.timesSetAgain === timesSetAgain;
        if (!isSame || this.owned.mayBeSet(master)) return TIMED_OUT;
        this.drawn.set(master, { run, timesSetAgain });
        return answer;
      },
    };
  }

  // Another holder may have drawn at a master whose keys were set again, or which runs anew.
  protected situationOf(master: Master): Situation {
    const { run } = master.identity();
    return { run, timesSetAgain: this.owned.timesSetAgain(master) };
  }

  // The numbers of one round.
  // Protocol 9.3
  conclude(answers: readonly number[]): number | undefined {
    this.largest = answers.reduce((largest, answer) => Math.max(largest, answer), this.largest); // @mutant larger-draws-not-adopted
    const repeated = answers.filter((answer) => answer === this.largest).length; // @mutant larger-draws-not-adopted-2
    if (repeated >= this.quorum) this.token = this.largest; // @mutant token-of-one-master
    return this.token;
  }
}

export class TokenDraw extends TokenAgreement {
  constructor(private readonly held: Held) {
    super(quorumOf(held.owned.masters.length), held.owned);
  }

  // A larger number is progress, so another round follows at once. `undefined` if a round brought neither an agreement
  // nor progress, or if the validity ended.
  async run(): Promise<number | undefined> {
    let { agreed } = this;
    while (agreed === undefined) {
      const { progress: before } = this;
      agreed = this.conclude(await this.round());
      if (agreed === undefined && (this.progress === before || this.held.remaining <= 0)) return undefined;
    }
    return agreed;
  }

  // The numbers of the grants that came before the decision.
  private async round(): Promise<readonly number[]> {
    const { owned, context, remaining } = this.held;
    const { clock, settings } = context;
    const { monotonic: since } = clock.read();
    const send: SendRequest<Master> = (master, reply) => {
      const draw = this.drawFrom(master, since);
      master.ask(draw.request, (answer) => reply(draw.judge(answer)));
    };
    const timeout = Math.min(settings.masterTimeout, remaining);
    let drawn: readonly number[] = [];
    const conclude = ({ answered }: QuorumCall<Master>): void => void (drawn = answered.flatMap(numberIn));
    await new QuorumCall({ masters: owned.masters, send, clock, timeout, conclude }).decided;
    return drawn;
  }
}

function numberIn(answer: Reply): readonly number[] {
  const { fence } = answer as GrantedReply;
  return answer.kind === 'granted' && fence !== undefined ? [fence] : [];
}

// Beyond this time, microseconds approach the largest safe integer.
const LATEST_WALL_CLOCK = Date.UTC(2200, 0, 1);

// Since the epoch. `purpose`: what it is needed for, for the message.
// Protocol 9.4
export function microsecondsOf(clock: Clock, purpose: string): number {
  const { wall } = clock.read();
  if (wall < LATEST_WALL_CLOCK) return Math.floor(wall * 1_000);
  const requirement = `must show a time before the year 2200 for ${purpose}: correct the clock of this machine`;
  throw new RedlockConfigError('wall clock', new Date(wall).toISOString(), requirement);
}
