import { hash } from './hash.js';
import type { MasterReply, DrawRequest, Master } from './master.interface.js';

/** Number of counters on a master. Memory stays bounded, whatever the number of keys. Protocol 9.1. */
const COUNTERS = 4_096;

/** The counter of each key. Keys that share a counter merely skip numbers. */
export function countersOf(keys: readonly string[]): readonly number[] {
  return keys.map((key) => hash(key) % COUNTERS);
}

/** One request of a round, and the evaluation of its answer. */
export interface Draw {
  readonly request: DrawRequest;
  /** Evaluates the answer. If the draw has become worthless in the meantime, returns a timeout instead. */
  readonly judge: (answer: MasterReply) => MasterReply;
}

/**
 * Agreement of a quorum of masters on the fencing token of one lock.
 *
 * A token stands when a quorum of masters that have drawn for this lock answers exactly that number. Any later lock has
 * a quorum, too, so one of these masters draws a larger number for it. Two rules ensure this:
 *
 * - A master draws once and then only repeats its number. If it drew anew in every round, there would be no agreement.
 * - A master must draw anew after an extension may have set its key again, or after its data has changed, because
 *   another holder may have drawn there in the meantime.
 *
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 */
export class TokenAgreement {
  /** The masters that have drawn for this lock, each with the data set that it drew from. */
  private readonly drawn = new Map<Master, string | undefined>();
  /** Number of extensions that have begun. A draw that was sent before the last of them does not count. */
  private extensions = 0;
  private largest = 0;
  private token: number | undefined;

  constructor(
    private readonly quorum: number,
    private readonly names: { readonly keys: readonly string[]; readonly token: string },
  ) {}

  /** The token that was agreed on. It changes only if a larger one is demanded. */
  get agreed(): number | undefined {
    return this.token;
  }

  /** The largest number seen so far. */
  get progress(): number {
    return this.largest;
  }

  /** Demands a token of at least `atLeast`. */
  demand(atLeast: number): void {
    if (atLeast <= this.largest) return;
    this.largest = atLeast;
    this.token = undefined;
  }

  /**
   * An extension begins. Until its answer shows otherwise, each master may have set its keys again.
   * Protocol 9.2 and 9.5.
   *
   * @returns a function that receives the answers
   */
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

  /** The request to a master in the next round. Protocol 9.1. */
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
        if (extension !== this.extensions || master.identity().data !== data) return STALE;
        this.drawn.set(master, data);
        return answer;
      },
    };
  }

  /** Evaluates the numbers that were counted in a round. Returns the token, if there is one now. Protocol 9.3. */
  conclude(answers: readonly number[]): number | undefined {
    this.largest = answers.reduce((largest, answer) => Math.max(largest, answer), this.largest); // @mutant larger-draws-not-adopted
    const repeated = answers.filter((answer) => answer === this.largest).length; // @mutant larger-draws-not-adopted-2
    if (repeated >= this.quorum) this.token = this.largest; // @mutant token-of-one-master
    return this.token;
  }
}

const STALE: MasterReply = Object.freeze({ kind: 'timeout', sent: true });
