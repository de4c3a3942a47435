/** Between which bounds the clock of a server is ahead of ours, in milliseconds. */
export interface ClockOffset {
  readonly least: number;
  readonly most: number;
}

/** One reading of a server's clock, which happened at some time between two readings of ours. */
export interface ClockSample {
  readonly sent: number;
  readonly received: number;
  readonly time: number;
}

/** Clocks that are read in whole milliseconds. */
const RESOLUTION = 1;

/** What all samples together allow. */
export function offsetOf(samples: readonly ClockSample[]): ClockOffset | undefined {
  if (samples.length === 0) return undefined;
  const least = Math.max(...samples.map(({ received, time }) => time - received)) - RESOLUTION;
  const most = Math.min(...samples.map(({ sent, time }) => time - sent)) + RESOLUTION;
  // A clock that moved meanwhile.
  return least <= most ? { least, most } : { least: most, most: least };
}

export function middleOf({ least, most }: ClockOffset): number {
  return (least + most) / 2;
}

/** How far a clock is certainly away from another one, in milliseconds; ahead if positive. */
export function certainDistance(clock: ClockOffset, reference: ClockOffset): number {
  if (clock.least > reference.most) return clock.least - reference.most;
  return clock.most < reference.least ? clock.most - reference.least : 0;
}

/** The offset in the middle of all: what most clocks agree on, if most of them agree. */
export function medianOf(offsets: readonly ClockOffset[]): ClockOffset | undefined {
  const sorted = [...offsets].sort((a, b) => middleOf(a) - middleOf(b));
  return sorted[Math.floor((sorted.length - 1) / 2)];
}
