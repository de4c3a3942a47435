import type { Clock, Instant, Timer } from '../clock.js';
import type { MasterReport } from '../errors.js';
import {
  type MasterReply,
  type Master,
  mayHaveReached,
  type ReplyCallback,
  type MasterRequest,
  TIMED_OUT,
} from '../master.interface.js';

export function quorumOf(masters: number): number {
  return Math.floor(masters / 2) + 1; // @mutant quorum-minus-one
}

// Its request has taken effect, and has to be released.
const EXCLUDED: MasterReply = Object.freeze({
  ...{ kind: 'unreachable', reason: 'it turned out to be the same server as another master', sent: true },
} as const);

// Calls `reply` at most once.
export type SendRequest = (master: Master, reply: ReplyCallback) => void;

interface QuorumRequest {
  readonly masters: readonly Voter[];
  // What sends it where `master.ask(request)` is not enough.
  readonly request: MasterRequest | SendRequest;
  readonly clock: Clock;
  // Milliseconds after which a master that has not answered counts as timed out.
  readonly timeout: number;
  // Called with the decision, before `decided` resolves.
  readonly conclude?: ((quorumCall: QuorumCall) => void) | undefined;
  // Called when every master has answered, in time or not.
  readonly settle?: (() => void) | undefined;
  // A reading of this turn of the event loop, if there is one.
  readonly now?: Instant | undefined;
}

interface Voter extends Master {
  // The master turned out to be the same server as another one, maybe while a request is under way.
  readonly isExcluded?: boolean;
}

export type Outcome = 'granted' | 'held' | 'unavailable';

// The result is certain at the quorum-th grant, or when a quorum of grants has become impossible. Slow masters are not
// awaited, and a master that does not answer within the timeout counts as a no.
export class QuorumCall {
  private readonly answers: (MasterReply | undefined)[];
  private readonly quorum: number;
  private timer: Timer | undefined;
  private open = true;
  private counted: number[] | undefined;
  private grants = 0;
  private pending: number;
  private decide: ((quorumCall: this) => void) | undefined;
  private completed: (() => void) | undefined;

  private readonly masters: readonly Voter[];
  private readonly conclude: ((quorumCall: QuorumCall) => void) | undefined;
  private readonly settle: (() => void) | undefined;

  constructor({ masters, request, clock, timeout, conclude, settle, now }: QuorumRequest) {
    this.masters = masters;
    this.conclude = conclude;
    this.settle = settle;
    this.quorum = quorumOf(masters.length);
    this.pending = masters.length;
    // A copy has no holes as `new Array(length)` has, and room for just these.
    const answers: unknown[] = masters.slice();
    this.answers = answers.fill(undefined) as undefined[];
    for (let index = 0; index < masters.length; index++) this.ask(masters[index] as Voter, index, request);
    // Last, so that the requests do not wait for it.
    if (this.open) this.timer = clock.schedule(timeout, () => clock.afterInput(() => this.giveUp()), 0, now);
  }

  // Never rejects. To be read once.
  get decided(): Promise<this> {
    if (!this.open) return Promise.resolve(this);
    return new Promise((resolve) => (this.decide = resolve));
  }

  get isOpen(): boolean {
    return this.open;
  }

  // Protocol 4.1
  private ask(master: Voter, index: number, request: MasterRequest | SendRequest): void {
    const reply = (answer: MasterReply): void => this.count(index, answer);
    if (typeof request === 'function') request(master, reply);
    else master.ask(request, reply);
  }

  // Of the answers so far, on the assumption that masters without an answer can vote.
  get outcome(): Outcome {
    if (this.grants >= this.quorum) return 'granted';
    // A master whose answer was not awaited may well be able to vote.
    const voters = this.answers.filter((answer) => !answer || answer.kind === 'granted' || answer.kind === 'held');
    return voters.length >= this.quorum ? 'held' : 'unavailable';
  }

  // Another token holds the keys, but not on all of the masters.
  get isSplit(): boolean {
    return this.outcome === 'held' && this.grants > 0;
  }

  // According to a quorum of masters.
  get ownedByOther(): boolean {
    return this.answers.filter((answer) => answer?.kind === 'held').length >= this.quorum;
  }

  // Only of the grants that were counted.
  get fences(): readonly number[] {
    return this.counted ?? [];
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

  get answered(): readonly MasterReply[] {
    return this.answers.filter((answer) => answer !== undefined);
  }

  isGrantedBy(master: Master): boolean {
    return this.answerOf(master)?.kind === 'granted';
  }

  hasAsked(master: Master): boolean {
    return this.masters.includes(master);
  }

  // `undefined` if it has not answered or was not asked.
  answerOf(master: Master): MasterReply | undefined {
    return this.answers[this.masters.indexOf(master)];
  }

  // Where the request may have taken effect, or may still do so.
  get reached(): readonly Master[] {
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

  // Masters that have not answered count as timed out.
  giveUp(): void {
    this.answers.forEach((answer, index) => (this.answers[index] = answer ?? TIMED_OUT));
    if (this.open) this.close();
    else this.completed?.();
  }

  private count(index: number, answer: MasterReply): void {
    this.pending--;
    if (this.open) {
      this.answers[index] = answer;
      if (answer.kind === 'granted') {
        this.grants++;
        if (answer.fence !== undefined) (this.counted ??= []).push(answer.fence);
      }
      if (this.grants >= this.quorum) this.dropExcluded();
      // Protocol 4.3
      if (this.grants >= this.quorum || this.grants + this.pending < this.quorum) this.close();
    } else {
      // Answers after the decision still show on which masters the request took effect.
      this.answers[index] ??= answer;
      if (this.completed && !this.isUncertain) this.completed();
    }
    if (this.pending === 0) this.settle?.();
  }

  // One server has one vote, even if a second address led to it only after it had granted over the first.
  private dropExcluded(): void {
    this.masters.forEach(({ isExcluded }, index) => {
      const answer = this.answers[index];
      if (!isExcluded || answer?.kind !== 'granted') return;
      this.answers[index] = EXCLUDED;
      this.grants--;
      if (answer.fence !== undefined) this.counted?.splice(this.counted.indexOf(answer.fence), 1);
    });
  }

  private close(): void {
    this.open = false;
    this.timer?.cancel();
    this.conclude?.(this);
    this.decide?.(this);
  }
}

interface Inquiry<M extends Pick<Master, 'name' | 'ask'>> extends Pick<QuorumRequest, 'clock' | 'timeout'> {
  readonly masters: readonly M[];
  // A reply for a master that need not be asked.
  readonly request: MasterRequest | ((master: M) => MasterRequest | MasterReply);
  // Sees each answer when it arrives, and returns what counts.
  readonly judge?: (answer: MasterReply, master: M) => MasterReply;
  // No further answer can change the result.
  readonly isDecided?: (answers: readonly MasterReply[]) => boolean;
}

// Unlike a quorum call, this waits for every answer, unless `isDecided` says otherwise.
export function askAll<M extends Pick<Master, 'name' | 'ask'>>(inquiry: Inquiry<M>): Promise<readonly MasterReport[]> {
  const { masters, request, clock, timeout, judge, isDecided } = inquiry;
  return new Promise((resolve) => {
    const answers = new Map<M, MasterReply>();
    const finish = (): void => {
      timer.cancel();
      resolve(masters.map((master) => ({ master: master.name, answer: answers.get(master) ?? TIMED_OUT })));
    };
    const timer = clock.schedule(timeout, () => clock.afterInput(finish));
    const count = (master: M, answer: MasterReply): void => {
      answers.set(master, judge ? judge(answer, master) : answer);
      if (answers.size === masters.length || isDecided?.([...answers.values()])) finish();
    };
    for (const master of masters) {
      const asked = typeof request === 'function' ? request(master) : request;
      if ('op' in asked) master.ask(asked, (answer) => count(master, answer));
      else count(master, asked);
    }
  });
}
