import type { LeasedKeys } from './acquire/leased-keys.js';
import type { Clock } from './clock.js';
import type { Random } from './holder.js';
import { hash } from './keyspace.js';
import { type DrawRequest, type Master, type MasterReply, TIMED_OUT } from './master.interface.js';
import { microsecondsOf } from './wall-clock.js';
import { QuorumCall, quorumOf, type SendRequest } from './acquire/quorum-call.js';

interface FencingTokenOptions {
  readonly leasedKeys: Pick<LeasedKeys, 'drawToken'>;
  readonly clock: Clock;
  readonly random: Random;
  // Between two attempts to agree, in milliseconds.
  readonly longestPause: () => number;
  // Throws unless the lock is held now.
  readonly assertHeld: () => Promise<void>;
}

// Attempts to agree on the token are repeated until the lock ends.
export class FencingToken {
  private agreed: Promise<number> | undefined;
  private goOn: (() => void) | undefined;
  // Absent before the masters have agreed.
  drawn: number | undefined;

  constructor(private readonly options: FencingTokenOptions) {}

  get value(): Promise<number> {
    this.agreed ??= this.agree().catch((error: unknown) => {
      // A later call may succeed.
      this.agreed = undefined;
      throw error;
    });
    return this.agreed;
  }

  end(): void {
    this.goOn?.();
  }

  private async agree(): Promise<number> {
    const { leasedKeys, random, longestPause, assertHeld } = this.options;
    for (;;) {
      await assertHeld();
      const token = await leasedKeys.drawToken();
      // An agreement that is reached after the end of the validity does not count.
      await assertHeld();
      if (token !== undefined) return (this.drawn = token);
      await this.pause(longestPause() * random.fraction());
    }
  }

  private pause(delay: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.options.clock.schedule(delay, resolve);
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

// A token stands when a quorum of masters that have drawn for this lock answers exactly that number. Any later lock has
// a quorum, too, so one of these masters draws a larger number for it. Therefore, a master draws once and then only
// repeats its number, unless an extension may have set its key again or its data has changed: then another holder may
// have drawn there.
// @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
export class TokenAgreement {
  // Each with the data set that it drew from.
  private readonly drawn = new Map<Master, string | undefined>();
  // A draw that was sent before the last extension does not count.
  private extensions = 0;
  private largest = 0;
  private token: number | undefined;

  constructor(
    private readonly quorum: number,
    private readonly names: { readonly keys: readonly string[]; readonly token: string },
  ) {}

  // It changes only if a larger one is demanded.
  get agreed(): number | undefined {
    return this.token;
  }

  get progress(): number {
    return this.largest;
  }

  demand(atLeast: number): void {
    if (atLeast <= this.largest) return;
    this.largest = atLeast;
    this.token = undefined;
  }

  // Until its answer shows otherwise, each master may have set its keys again.
  // Protocol 9.2 and 9.5
  beginExtension(): (master: Master, answer: MasterReply) => void {
    const before = new Map(this.drawn);
    const extension = ++this.extensions;
    this.drawn.clear();
    return (master, answer) => {
      const isRefreshed = answer.kind === 'granted' && answer.healed !== true; // @mutant healed-master-keeps-its-draw
      if (!isRefreshed || extension !== this.extensions || this.drawn.has(master) || !before.has(master)) return;
      this.drawn.set(master, before.get(master));
    };
  }

  // Protocol 9.1
  drawFrom(master: Master, floor: number): Draw {
    const { data } = master.identity();
    const isFirst = !this.drawn.has(master) || this.drawn.get(master) !== data; // @mutant nothing-drawn
    const { keys, token } = this.names;
    const atLeast = isFirst ? Math.max(floor, this.largest) : this.largest; // @mutant floor-ignored
    const extension = this.extensions;
    return {
      request: { op: 'draw', keys, token, counters: countersOf(keys), atLeast, isFirst },
      judge: (answer) => {
        if (answer.kind !== 'granted') return answer;
        if (extension !== this.extensions || master.identity().data !== data) return TIMED_OUT;
        this.drawn.set(master, data);
        return answer;
      },
    };
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

interface TokenDrawContext {
  readonly masters: readonly Master[];
  readonly clock: Clock;
  readonly keys: readonly string[];
  readonly token: string;
  // Of a round, in milliseconds.
  readonly masterTimeout: number;
  // Milliseconds for which the lock can still be relied on.
  readonly remaining: () => number;
}

export class TokenDraw extends TokenAgreement {
  constructor(private readonly context: TokenDrawContext) {
    super(quorumOf(context.masters.length), context);
  }

  // A larger number is progress, so another round follows at once. `undefined` if a round brought neither an agreement
  // nor progress, or if the validity ended.
  async run(atLeast: number): Promise<number | undefined> {
    this.demand(atLeast);
    let { agreed } = this;
    while (agreed === undefined) {
      const { progress: before } = this;
      const { fences } = await this.round();
      agreed = this.conclude(fences);
      if (agreed === undefined && (this.progress === before || this.context.remaining() <= 0)) return undefined;
    }
    return agreed;
  }

  private round(): Promise<QuorumCall> {
    const { masters, clock, masterTimeout, remaining } = this.context;
    // So that later locks start higher even if the counters were lost. A server's clock never lowers it, because a server that
    // is behind would move tokens back.
    // Protocol 9.4
    const floor = microsecondsOf(clock, 'fencing tokens');
    const request: SendRequest = (master, reply) => {
      const draw = this.drawFrom(master, floor);
      master.ask(draw.request, (answer) => reply(draw.judge(answer)));
    };
    const timeout = Math.min(masterTimeout, Math.max(remaining(), 0));
    return new QuorumCall({ masters, request, clock, timeout }).decided;
  }
}
