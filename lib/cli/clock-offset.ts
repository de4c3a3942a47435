/** Bounds on how far a server's clock is ahead of the local clock, in milliseconds. */
export interface ClockOffset {
  readonly least: number;
  readonly most: number;
}

/** One reading of a server's clock, taken at some moment between two readings of the local clock. */
export interface ClockSample {
  readonly sent: number;
  readonly received: number;
  readonly time: number;
}

/** Clocks are read in whole milliseconds. */
const RESOLUTION = 1;

/** The offset that all samples together allow. */
export function offsetOf(samples: readonly ClockSample[]): ClockOffset | undefined {
  if (samples.length === 0) return undefined;
  const least = Math.max(...samples.map(({ received, time }) => time - received)) - RESOLUTION;
  const most = Math.min(...samples.map(({ sent, time }) => time - sent)) + RESOLUTION;
  // The bounds cross if a clock was set meanwhile.
  return least <= most ? { least, most } : { least: most, most: least };
}

export function middleOf({ least, most }: ClockOffset): number {
  return (least + most) / 2;
}

/** The certain distance of a clock from another one, in milliseconds; positive if the clock is ahead. */
export function certainDistance(clock: ClockOffset, reference: ClockOffset): number {
  if (clock.least > reference.most) return clock.least - reference.most;
  return clock.most < reference.least ? clock.most - reference.least : 0;
}

/** The median offset: the one that most clocks agree on, if most of them agree. */
export function medianOf(offsets: readonly ClockOffset[]): ClockOffset | undefined {
  const sorted = [...offsets].sort((a, b) => middleOf(a) - middleOf(b));
  return sorted[Math.floor((sorted.length - 1) / 2)];
}
