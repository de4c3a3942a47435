import { elapsedBetween, type Instant } from '../../core/clock.js';

// A clock that is corrected by slewing runs too fast by this ratio at most.
const SLEW = 500e-6;
// A server's time is in whole milliseconds.
const RESOLUTION = 1;
// Share by which a clock that is being corrected may run too fast or too slow.
export const SLEWED = 0.002;
// Times of servers are in whole milliseconds.
export const ROUNDED = 2;
const MAX_SAMPLES = 8;
// So that the kept samples cover the last two windows.
const SAMPLES_IN_WINDOW = 4;
// In milliseconds: samples that are closer together add no information.
const MIN_WINDOW = 1_000;

// How far a server's clock is ahead of this client's monotonic clock: an interval, because the answer took time. In
// milliseconds.
export interface Sample {
  readonly sent: number;
  readonly received: number;
  readonly min: number;
  readonly max: number;
  // How much of the interval has already counted as a standstill of this client; default: 0.
  readonly counted?: number;
}

// How far a server's clock has certainly moved relative to this client's clock: bounds in milliseconds.
export type Movement = Pick<Sample, 'min' | 'max' | 'counted'>;

export type Judgement =
  // This client's own clock stood still or ran slow: by `min` milliseconds certainly, and by `by` at most.
  | { readonly culprit: 'client'; readonly min: number; readonly by: number }
  // The server's clock moved forward: its keys have expired early.
  | { readonly culprit: 'server'; readonly by: number }
  // One of the two: the other servers do not show which.
  | { readonly culprit: 'either'; readonly min: number; readonly by: number };

export class ServerClock {
  private samples: Sample[] = [];
  private latest: Sample | undefined;
  // Milliseconds by which it moved forward, until all clients can learn of it.
  step: number | undefined;

  // `window` is the smallest ttl in use, in milliseconds: a step matters to the keys that are alive when it happens.
  constructor(private readonly window: () => number) {}

  // In milliseconds. The comparison with each sample of the last two windows detects many small steps that add up, and
  // a clock that was set back and comes forward again.
  movedForward(sample: Sample): number {
    let furthest = 0;
    for (const before of this.samples) furthest = Math.max(furthest, leastMovement(before, sample));
    return furthest;
  }

  movedBack(sample: Sample, allowance: number): boolean {
    const last = this.samples.at(-1);
    return last !== undefined && movement(last, sample).max < -allowance;
  }

  // Those after which the clock moved forward by more than the allowance, the latest first.
  before(sample: Sample, allowance: number): readonly Sample[] {
    // The latest may be the only one that is not older than the first samples of the other servers.
    const all = this.latest ? [...this.samples, this.latest] : this.samples;
    return all.filter((before) => movement(before, sample).min > allowance).reverse();
  }

  // The step is not the work of one odd sample: if the clock of this client was ahead for a moment, the server's seems
  // to move forward after it, but not after the sample before.
  isConfirmed(sample: Sample, allowance: number): boolean {
    const shows = this.samples.filter((before) => movement(before, sample).min > allowance);
    return this.samples.length < 2 || shows.length >= 2;
  }

  movementSince(moment: number, sample: Sample): Movement | undefined {
    const before = this.samples.findLast(({ received }) => received <= moment);
    return before && movement(before, sample);
  }

  // Of each part of a window, the sample in which the server was furthest behind.
  keep(sample: Sample): void {
    const { samples } = this;
    this.latest = sample;
    const last = samples.at(-1);
    const spacing = Math.max(MIN_WINDOW, this.window()) / SAMPLES_IN_WINDOW;
    const before = samples.at(-2);
    if (last && sample.sent - (before?.sent ?? -Infinity) < spacing) {
      if (sample.max < last.max) samples[samples.length - 1] = sample;
      return;
    }
    samples.push(sample);
    if (samples.length > MAX_SAMPLES) samples.shift();
  }

  // In milliseconds.
  ageAt(now: number): number {
    return now - (this.samples.at(-1)?.received ?? -Infinity);
  }

  get hasSamples(): boolean {
    return this.samples.length > 0;
  }

  // This client's clock stood still for so many milliseconds, beginning after `since`. Older samples are compared as if
  // it had not; newer ones may be from before or after the standstill, and are forgotten.
  shift({ min, max }: Movement, since: number): void {
    const shifted = ({ counted = 0, ...sample }: Sample): Sample => ({
      ...{ ...sample, min: sample.min + min, max: sample.max + max, counted: counted + max - min },
    });
    const { latest } = this;
    this.samples = this.samples.filter(({ received }) => received <= since).map(shifted);
    this.latest = latest && latest.received <= since ? shifted(latest) : undefined;
  }

  forget(): void {
    this.samples.length = 0;
    this.latest = undefined;
  }
}

// `time` is the wall clock of the server in milliseconds, read at some moment between sending and receiving.
export function sampleOf(sent: Instant, received: Instant, time: number): Sample {
  return {
    sent: sent.monotonic,
    received: received.monotonic,
    min: time - received.monotonic,
    max: time + RESOLUTION - sent.monotonic,
  };
}

// `others` are movements since before the step, `undefined` where unknown; `latest` is the movement of the suspect when
// the others answered.
// Protocol 8.11
export function judgeStep(
  suspect: Movement,
  others: readonly (Movement | undefined)[],
  {
    quorum,
    allowance,
    latest = suspect,
  }: { readonly quorum: number; readonly allowance: number; readonly latest?: Movement | undefined },
): Judgement {
  const known = others.filter((other) => other !== undefined);
  // This client may have stood still again since the first answer: then the later ones show both.
  const furthest = latest.min > suspect.min ? latest : suspect;
  const alike = known.filter(
    ({ min, max }) => min - allowance <= furthest.max && suspect.min - allowance <= max && min > 0,
  );
  if (alike.length + 1 >= quorum && known.length > 0) {
    const shown = [furthest, ...alike];
    const [min = 0] = shown
      .map((each) => each.min)
      .sort((one, other) => other - one)
      .slice(quorum - 1);
    const by = Math.min(...shown.map(uncounted).filter((max) => max >= min));
    return { culprit: 'client', min, by };
  }
  const { min } = suspect;
  const by = uncounted(suspect);
  const unmoved = known.filter(
    (other) => other.max < min - allowance / 2 && other.min <= allowance && other.max >= -allowance,
  );
  return unmoved.length > alike.length ? { culprit: 'server', by: min } : { culprit: 'either', min, by };
}

function uncounted({ min, max, counted = 0 }: Movement): number {
  return Math.max(min, max - counted);
}

// As `movement` without an object, because each grant is compared with several samples.
function leastMovement(before: Sample, after: Sample): number {
  return after.min - before.max - Math.max(0, after.received - before.sent) * SLEW;
}

export function movement(before: Sample, after: Sample): Movement {
  const slew = Math.max(0, after.received - before.sent) * SLEW;
  const { counted = 0 } = before;
  return { min: after.min - before.max - slew, max: after.max - before.min + slew, counted };
}

// The wait until one quarantine ends, by the clock of the server and by the clock of this process.
export class QuarantineWait {
  private watched: { readonly from: number; readonly left: number; readonly since: Instant } | undefined;
  // The end by the monotonic clock of this process, in milliseconds.
  private until: { readonly since: number; readonly length: number } | undefined;

  // A reading at `since` shows a quarantine that ends at `from` by the server's clock, `left` milliseconds later.
  watch(from: number, left: number, since: Instant): void {
    this.watched = { from, left, since };
  }

  forget(): void {
    this.watched = undefined;
  }

  // The end has passed by the clock of the server only: the clock was set forward while this process watched.
  endsTooEarly(from: number, now: Instant): boolean {
    const { watched } = this;
    if (watched?.from !== from) return false;
    // Protocol 8.2
    return elapsedBetween(watched.since, now) < watched.left * (1 - SLEWED) - ROUNDED;
  }

  leftAt(now: Instant): number {
    return this.watched ? this.watched.left - elapsedBetween(this.watched.since, now) : 0;
  }

  // The wait lasts at most `length` milliseconds from `since`.
  limit(since: Instant, length: number): void {
    this.until = { since: since.monotonic, length };
  }

  // In milliseconds: the latest end; at least 1.
  remainingAt({ monotonic }: Instant): number {
    const { since, length } = this.until ?? { since: monotonic, length: 0 };
    return Math.max(1, length - (monotonic - since));
  }
}
