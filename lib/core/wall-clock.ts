import type { Clock, Instant } from './clock.js';
import type { Extension } from './acquire/leased-keys.js';
import { RedlockConfigError } from './errors.js';

// Gradual corrections move the wall clock by less than this within a second, in milliseconds. They count as time, like
// every lead of the wall clock.
const NOTICEABLE = 10;
// In milliseconds. Less than `NOTICEABLE` in this time is a gradual correction.
const CORRECTED_IN = 1_000;

interface WallClockWatchOptions {
  readonly clock: Clock;
  // The wall clock has moved this many milliseconds further than the monotonic one. It was set forward, or time has
  // passed that the monotonic clock has missed: no clock of this process can show which.
  readonly leads: (milliseconds: number) => void;
  // The wall clock was set back by so many milliseconds.
  readonly setBack: (milliseconds: number) => void;
}

// Compares the two clocks of this process, from one reading to the next.
export class WallClockWatch {
  // How far the wall clock was ahead when both last agreed; `undefined` before the first reading.
  private ahead: number | undefined;
  // By the monotonic clock.
  private agreedAt = 0;

  constructor(private readonly options: WallClockWatchOptions) {}

  // Whatever happened until the next reading is of no interest.
  restart(): void {
    this.ahead = undefined;
  }

  check(now: Instant): void {
    const lead = leadOf(now, this.ahead);
    if (this.ahead === undefined || (Math.abs(lead) <= NOTICEABLE && now.monotonic - this.agreedAt > CORRECTED_IN)) {
      this.agreeOn(now);
    } else if (lead > NOTICEABLE) this.confirmLead(lead);
    else if (lead < -NOTICEABLE) {
      this.agreeOn(now);
      this.options.setBack(-lead);
    }
  }

  // A process that is interrupted between its two clocks reads a lead, too, but not twice.
  private confirmLead(first: number): void {
    const { clock, leads } = this.options;
    const now = clock.read();
    const lead = Math.min(first, leadOf(now, this.ahead));
    if (lead <= NOTICEABLE) return;
    this.agreeOn(now);
    leads(lead);
  }

  private agreeOn(now: Instant): void {
    this.ahead = leadOf(now, 0);
    this.agreedAt = now.monotonic;
  }
}

export function hasLead(from: Instant, to: Instant): boolean {
  return leadOf(to, leadOf(from, 0)) > NOTICEABLE;
}

export function shiftWall({ monotonic, wall }: Instant, milliseconds: number): Instant {
  return { monotonic, wall: wall + milliseconds };
}

function leadOf({ monotonic, wall }: Instant, ahead = 0): number {
  return wall - monotonic - ahead;
}

// While the clocks of this process go on to disagree, the masters are asked so many times whether a lock has lasted.
const MAX_QUESTIONS = 3;

interface ClockDoubtOptions {
  readonly isOver: () => boolean;
  // The extension under way.
  readonly round: () => Promise<unknown> | undefined;
  // Whether the masters have had the keys all the time.
  readonly ask: () => Promise<Extension | undefined>;
  // With the last answer and the lead in milliseconds, unless the lock is over.
  readonly answered: (answer: Extension | undefined, lead: number) => void;
}

// The wall clock has moved further than the monotonic one. It was set, or time has passed that the monotonic clock has
// missed: the masters know whether the lock has lasted. It is not held until they have answered.
// Protocol 3.4
export class ClockDoubt {
  // `undefined` unless a doubt is pending.
  resolved: Promise<void> | undefined;
  // How far the wall clock has moved ahead in this doubt, in milliseconds, and how many times it has.
  private lead = 0;
  private times = 0;
  // The lead of a doubt after which the masters did not confirm the lock.
  private unconfirmed = 0;

  constructor(private readonly options: ClockDoubtOptions) {}

  begin(lead: number): void {
    this.times++;
    this.lead += lead;
    this.resolved ??= this.resolve();
  }

  // An extension has succeeded: what an earlier doubt left open does not matter any more.
  settle(): void {
    this.unconfirmed = 0;
  }

  // `undefined` unless a doubt is pending.
  get explanation(): string | undefined {
    return this.resolved && `${inWords(this.lead)}, and the masters have not answered yet`;
  }

  // `undefined` if the lock expired for another reason than an earlier doubt.
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
    this.unconfirmed = lead;
    answered(answer, lead);
  }
}

function inWords(lead: number): string {
  return `this process was suspended, or its wall clock was set forward, by ${Math.round(lead)} ms`;
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
