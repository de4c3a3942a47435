import type { Extension } from './acquire/leased-keys.interface.js';

/** The masters are asked so many times whether a lock has lasted while the clocks of this process go on to disagree. */
const MAX_QUESTIONS = 3;

interface ClockDoubtOptions {
  readonly isOver: () => boolean;
  /** The extension under way. */
  readonly round: () => Promise<unknown> | undefined;
  /** Asks the masters whether they have had the keys all the time. */
  readonly ask: () => Promise<Extension | undefined>;
  /** Called with their last answer and the lead in milliseconds, unless the lock is over. */
  readonly answered: (answer: Extension | undefined, lead: number) => void;
}

/**
 * The wall clock has moved further than the monotonic one. It was set, or time has passed that the monotonic clock has
 * missed: the masters know whether the lock has lasted. It is not held until they have answered.
 * Protocol 3.4.
 */
export class ClockDoubt {
  /** Resolves when the masters have answered; `undefined` unless a doubt is pending. */
  resolved: Promise<void> | undefined;
  /** How far the wall clock has moved ahead in this doubt, in milliseconds, and how many times it has. */
  private lead = 0;
  private times = 0;
  /** The lead of a doubt after which the masters did not confirm the lock. */
  private unconfirmed = 0;

  constructor(private readonly options: ClockDoubtOptions) {}

  begin(lead: number): void {
    this.times++;
    this.lead += lead;
    this.resolved ??= this.resolve();
  }

  /** An extension has succeeded: what an earlier doubt left open does not matter any more. */
  settle(): void {
    this.unconfirmed = 0;
  }

  /** Why the lock is not held; `undefined` unless a doubt is pending. */
  get explanation(): string | undefined {
    return this.resolved && `${inWords(this.lead)}, and the masters have not answered yet`;
  }

  /** Why the lock was not extended; `undefined` if that is not for an earlier doubt. */
  get expiryExplanation(): string | undefined {
    if (this.unconfirmed === 0) return undefined;
    return `${inWords(this.unconfirmed)}, and a majority of the masters did not still have it`;
  }

  private async resolve(): Promise<void> {
    const { isOver, round, ask, answered } = this.options;
    // The answers of two rounds are indistinguishable.
    await round();
    let answer: Extension | undefined;
    for (let asked = 0, isNew = true; isNew && asked < MAX_QUESTIONS && !isOver(); asked++) {
      const { times } = this;
      answer = await ask();
      isNew = times !== this.times || (answer?.quorumCall.outcome === 'granted' && !answer.extended);
    }
    const { lead } = this;
    this.resolved = undefined;
    this.lead = 0;
    if (isOver()) return;
    this.unconfirmed = answer?.extended ? 0 : lead;
    answered(answer, lead);
  }
}

function inWords(lead: number): string {
  return `this process was suspended, or its wall clock was set forward, by ${Math.round(lead)} ms`;
}
