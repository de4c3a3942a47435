import type { Clock, Instant } from './clock.js';
import type { MasterReport } from './errors.js';
import { isLacking, mayHaveReached, type Reply, type Server, timedOut } from './server.js';
import { TimeLimit } from './time-limit.js';

export function quorumOf(masters: number): number {
  return Math.floor(masters / 2) + 1; // @mutant quorum-minus-one
}

// Its request has taken effect, and has to be released.
const EXCLUDED: Reply = Object.freeze({
  ...{ kind: 'unreachable', reason: 'it turned out to be the same server as another master', sent: true },
} as const);

// Calls `reply` at most once.
export type SendRequest<S extends Server = Server> = (master: S, reply: (answer: Reply) => void) => void;

interface QuorumRequest<S extends Server> {
  readonly masters: readonly S[];
  // The one that is asked last, if it is one of them; default: the last one.
  readonly last?: S | undefined;
  // Asks one of them.
  readonly send: SendRequest<S>;
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  // Called with the decision, before `decided` resolves.
  readonly conclude?: ((quorumCall: QuorumCall<S>) => void) | undefined;
  // Called for each answer after the decision.
  readonly late?: ((master: S, answer: Reply) => void) | undefined;
  // Called when every master has answered, in time or not.
  readonly settle?: (() => void) | undefined;
  // So many masters that lack the keys are a loss, which is then awaited as well as a quorum of grants.
  readonly lossAt?: number | undefined;
  // A reading of this turn of the event loop, if there is one.
  readonly now?: Instant | undefined;
}

export type Outcome = 'granted' | 'held' | 'unavailable';

// The result is certain at the quorum-th grant, or when a quorum of grants has become impossible. Slow masters are not
// awaited, and a master that does not answer within the timeout counts as a no. So many of the grants have to be lasting that
// no quorum of another holder could have done without all of these masters: of an odd number of masters, a quorum.
export class QuorumCall<S extends Server = Server> {
  private readonly answers: (Reply | undefined)[];
  private readonly quorum: number;
  private limit: TimeLimit | undefined;
  private open = true;
  private grants = 0;
  // Grants of masters that have had the keys all the time.
  private lasting = 0;
  private lacking = 0;
  private pending: number;
  private decide: ((quorumCall: this) => void) | undefined;
  private completed: (() => void) | undefined;

  private readonly masters: readonly S[];
  private readonly conclude: ((quorumCall: QuorumCall<S>) => void) | undefined;
  private readonly late: ((master: S, answer: Reply) => void) | undefined;
  private readonly settle: (() => void) | undefined;
  private readonly lossAt: number;

  constructor({ masters, last, send, clock, timeout, conclude, late, settle, lossAt, now }: QuorumRequest<S>) {
    this.masters = masters;
    this.conclude = conclude;
    this.late = late;
    this.settle = settle;
    this.lossAt = lossAt ?? masters.length + 1;
    this.quorum = quorumOf(masters.length);
    this.pending = masters.length;
    // A copy has no holes as `new Array(length)` has, and room for just these.
    const answers: unknown[] = masters.slice();
    this.answers = answers.fill(undefined) as undefined[];
    const lastAt = last ? masters.indexOf(last) : -1;
    // Protocol 4.1
    for (let index = 0; index < masters.length; index++) if (index !== lastAt) this.ask(index, send);
    if (lastAt >= 0) this.ask(lastAt, send);
    // Last, so that the requests do not wait for it.
    if (this.pending > 0) this.limit = new TimeLimit({ clock, limit: timeout, end: () => this.giveUp(), now });
    if (!this.open) this.limit?.cancel();
  }

  private ask(index: number, send: SendRequest<S>): void {
    send(this.masters[index] as S, (answer) => this.count(index, answer));
  }

  // Never rejects. To be read once.
  get decided(): Promise<this> {
    if (!this.open) return Promise.resolve(this);
    return new Promise((resolve) => (this.decide = resolve));
  }

  get isOpen(): boolean {
    return this.open;
  }

  // Of the answers so far, on the assumption that masters without an answer can vote.
  get outcome(): Outcome {
    if (this.mayBeGranted(0)) return 'granted';
    // A master whose answer was not awaited may well be able to vote.
    const voters = this.answers.filter((answer) => !answer || answer.kind === 'granted' || answer.kind === 'held');
    return voters.length >= this.quorum ? 'held' : 'unavailable';
  }

  // Another token holds the keys, but not on all of the masters.
  get isSplit(): boolean {
    return this.outcome === 'held' && this.grants > 0;
  }

  // No master has granted anything, so that nothing has to be released.
  get isRefused(): boolean {
    return this.outcome === 'held' && this.grants === 0;
  }

  // According to a quorum of masters.
  get ownedByOther(): boolean {
    return this.answers.filter((answer) => answer?.kind === 'held').length >= this.quorum;
  }

  // So many masters lack the keys, or have lacked them, that another holder may have had them.
  // Protocol 6.3
  get isLost(): boolean {
    return this.answers.filter(isLacking).length >= this.lossAt;
  }

  // A missing answer can still distinguish a lock of another token from an outage.
  get isUncertain(): boolean {
    return this.outcome === 'held' && !this.ownedByOther && this.answers.includes(undefined);
  }

  // Until `isUncertain` is false, at the latest at `giveUp`. For decided calls only.
  complete(): Promise<void> {
    if (!this.isUncertain) return Promise.resolve();
    return new Promise((resolve) => {
      const before = this.completed;
      this.completed = () => {
        before?.();
        resolve();
      };
    });
  }

  get report(): readonly MasterReport[] {
    return this.masters.map((master, index) => ({ master: master.name, answer: this.answers[index] }));
  }

  get answered(): readonly Reply[] {
    return this.answers.filter((answer) => answer !== undefined);
  }

  isGrantedBy(master: S): boolean {
    return this.answerOf(master)?.kind === 'granted';
  }

  hasAsked(master: S): boolean {
    return this.masters.includes(master);
  }

  // `undefined` if it has not answered or was not asked.
  answerOf(master: S): Reply | undefined {
    return this.answers[this.masters.indexOf(master)];
  }

  // Where the request may have taken effect, or may still do so.
  get reached(): readonly S[] {
    // Protocol 4.5
    if (this.answers.every(mayHaveReached)) return this.masters; // @mutant release-only-to-granters-2
    return this.masters.filter((_, index) => mayHaveReached(this.answers[index])); // @mutant release-only-to-granters-1
  }

  // Milliseconds after which a quorum of masters could be free if the keys are not extended. `undefined` if too few
  // masters reported a time.
  get freeAfter(): number | undefined {
    const times = this.answers.flatMap((answer) => {
      if (answer?.kind === 'granted') return [0];
      return answer?.kind === 'held' && answer.remaining !== undefined ? [answer.remaining] : [];
    });
    return times.sort((a, b) => a - b)[this.quorum - 1];
  }

  // Milliseconds for which it is worth waiting for a missing answer.
  get timeLeft(): number {
    return this.limit?.left ?? 0;
  }

  // Masters that have not answered count as timed out.
  giveUp(blocked = this.limit?.blocked ?? 0): void {
    const missing = timedOut(blocked);
    this.answers.forEach((answer, index) => (this.answers[index] = answer ?? missing));
    if (this.open) this.close();
    else this.completed?.();
  }

  private count(index: number, answer: Reply): void {
    this.pending--;
    if (this.open) {
      this.answers[index] = answer;
      if (isLacking(answer)) this.lacking++;
      if (answer.kind === 'granted') {
        this.grants++;
        if (!answer.healed) this.lasting++;
      }
      if (this.grants >= this.quorum) this.dropExcluded();
      // Protocol 4.3
      if (this.mayBeGranted(0) || this.lacking >= this.lossAt || this.isHopeless) this.close();
    } else {
      // Answers after the decision still show on which masters the request took effect.
      this.answers[index] ??= answer;
      this.late?.(this.masters[index] as S, answer);
      if (this.completed && !this.isUncertain) this.completed();
    }
    if (this.pending === 0) this.settle?.();
  }

  // If so many more masters grant.
  private mayBeGranted(more: number): boolean {
    const { quorum, grants, lasting, masters } = this;
    return grants + more >= quorum && lasting + more > masters.length - quorum; // @mutant healed-masters-counted
  }

  // No further answer can decide it.
  private get isHopeless(): boolean {
    return !this.mayBeGranted(this.pending) && this.lacking + this.pending < this.lossAt;
  }

  // One server has one vote, even if a second address led to it only after it had granted over the first.
  private dropExcluded(): void {
    this.masters.forEach(({ isExcluded }, index) => {
      const answer = this.answers[index];
      if (!isExcluded || answer?.kind !== 'granted') return;
      this.answers[index] = EXCLUDED;
      this.grants--;
      if (!answer.healed) this.lasting--;
    });
  }

  private close(): void {
    this.open = false;
    this.limit?.cancel();
    this.conclude?.(this);
    this.decide?.(this);
  }
}
