import type { Clock, Timer } from './clock.js';
import type { MasterReport } from './errors.js';
import { type Answer, type Master, mayHaveReached, type Reply, type Request, TIMED_OUT } from './master.interface.js';

/** Number of masters that must agree: more than half. */
export function quorumOf(masters: number): number {
  return Math.floor(masters / 2) + 1;
}

/** Puts a question to one master. The reply comes once at most. */
export type Asking = (master: Master, reply: Reply) => void;

/** How a question to all masters ended. */
export type Outcome = 'granted' | 'held' | 'unavailable';

/**
 * One question to all masters.
 *
 * `decided` settles as soon as the result is certain: at the quorum-th grant, or when a quorum of grants has become
 * impossible. Nobody waits for the slow ones, and a master that does not answer within the timeout counts as a no.
 */
export class Ballot {
  /** The decision. Never rejects. */
  readonly decided: Promise<this>;
  private readonly answers: (Answer | undefined)[] = [];
  private readonly quorum: number;
  private timer: Timer | undefined;
  private open = true;
  private counted: number[] | undefined;
  private grants = 0;
  private pending: number;
  private decide!: (ballot: this) => void;
  private completed: (() => void) | undefined;

  constructor(
    private readonly masters: readonly Master[],
    request: Request,
    clock: Clock,
    timeout: number,
    /** What is to be done before anybody learns of the decision. */
    private readonly conclude?: (ballot: Ballot) => void,
    /** How a master is asked, where that takes more than the request. */
    ask?: Asking,
    /** What is to be done when every master has answered, in time or not. */
    private readonly settle?: () => void,
  ) {
    this.quorum = quorumOf(masters.length);
    this.pending = masters.length;
    this.decided = new Promise((resolve) => (this.decide = resolve));
    for (let index = 0; index < masters.length; index++) this.answers.push(undefined);
    masters.forEach((master, index) => {
      const reply = (answer: Answer): void => this.count(index, answer);
      if (ask) ask(master, reply);
      else master.ask(request, reply);
    });
    // Last, since nobody has to wait for it.
    if (this.open) this.timer = clock.schedule(timeout, () => clock.afterInput(() => this.giveUp()));
  }

  /** Whether it is not decided yet. */
  get isOpen(): boolean {
    return this.open;
  }

  /** What the answers counted so far amount to, if those that are missing are votes. */
  get outcome(): Outcome {
    if (this.grants >= this.quorum) return 'granted';
    // A master that was not waited for may well be able to vote.
    const voters = this.answers.filter((answer) => !answer || answer.kind === 'granted' || answer.kind === 'held');
    return voters.length >= this.quorum ? 'held' : 'unavailable';
  }

  /** Whether the votes are split: somebody else holds some of the masters only. */
  get isSplit(): boolean {
    return this.outcome === 'held' && this.grants > 0;
  }

  /** Whether a quorum of masters says that another token holds the keys. */
  get ownedByOther(): boolean {
    return this.answers.filter((answer) => answer?.kind === 'held').length >= this.quorum;
  }

  /** The fencing counters of the masters whose grants were counted. */
  get fences(): readonly number[] {
    return this.counted ?? [];
  }

  /** Whether a missing answer can still tell a lock that another token holds from an outage. */
  get isUncertain(): boolean {
    return this.outcome === 'held' && !this.ownedByOther && this.answers.includes(undefined);
  }

  /** Resolves when {@link isUncertain} has ended, which `giveUp` brings about. For a ballot that is decided. */
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

  /** What each master answered. */
  get report(): readonly MasterReport[] {
    return this.masters.map((master, index) => ({ master: master.name, answer: this.answers[index] }));
  }

  /** The answers so far. */
  get answered(): readonly Answer[] {
    return this.answers.filter((answer) => answer !== undefined);
  }

  /** Whether one master has granted. */
  isGrantedBy(master: Master): boolean {
    return this.answers[this.masters.indexOf(master)]?.kind === 'granted';
  }

  /** Whether one master was asked. */
  hasAsked(master: Master): boolean {
    return this.masters.includes(master);
  }

  /** What one master answered, if it was asked. */
  answerOf(master: Master): Answer | undefined {
    return this.answers[this.masters.indexOf(master)];
  }

  /** The masters on which the request may take effect, now or later. */
  get reached(): readonly Master[] {
    if (this.answers.every(mayHaveReached)) return this.masters;
    return this.masters.filter((_, index) => mayHaveReached(this.answers[index]));
  }

  /**
   * Milliseconds after which a quorum of masters could be free, if nobody extends. `undefined` when too few masters
   * told.
   */
  get freeAfter(): number | undefined {
    const times = this.answers.flatMap((answer) => {
      if (answer?.kind === 'granted') return [0];
      return answer?.kind === 'held' && answer.remaining !== undefined ? [answer.remaining] : [];
    });
    return times.sort((a, b) => a - b)[this.quorum - 1];
  }

  /** Ends the question now: whoever has not answered yet has not answered in time. */
  giveUp(): void {
    this.answers.forEach((answer, index) => (this.answers[index] = answer ?? TIMED_OUT));
    if (this.open) this.close();
    else this.completed?.();
  }

  private count(index: number, answer: Answer): void {
    this.pending--;
    if (this.open) {
      this.answers[index] = answer;
      if (answer.kind === 'granted') {
        this.grants++;
        if (answer.fence !== undefined) (this.counted ??= []).push(answer.fence);
      }
      if (this.grants >= this.quorum || this.grants + this.pending < this.quorum) this.close();
    } else {
      // Answers that come after the decision still tell which masters hold something.
      this.answers[index] ??= answer;
      if (this.completed && !this.isUncertain) this.completed();
    }
    if (this.pending === 0) this.settle?.();
  }

  private close(): void {
    this.open = false;
    this.timer?.cancel();
    this.conclude?.(this);
    this.decide(this);
  }
}

/** Asks all masters and waits for every answer, though not longer than the timeout. */
export function askAll(
  masters: readonly Pick<Master, 'name' | 'ask'>[],
  request: Request,
  clock: Clock,
  timeout: number,
): Promise<readonly MasterReport[]> {
  return new Promise((resolve) => {
    const answers = new Map<Pick<Master, 'name' | 'ask'>, Answer>();
    const finish = (): void => {
      timer.cancel();
      resolve(masters.map((master) => ({ master: master.name, answer: answers.get(master) ?? TIMED_OUT })));
    };
    const timer = clock.schedule(timeout, () => clock.afterInput(finish));
    for (const master of masters) {
      master.ask(request, (answer) => {
        answers.set(master, answer);
        if (answers.size === masters.length) finish();
      });
    }
  });
}
