import type { Clock, Timer } from '../core/clock.js';

/** So many lines of one subject are written at once. */
const BURST = 6;
/** Bounds of the time between two lines after that, in milliseconds. */
const FIRST_INTERVAL = 1_000;
const LAST_INTERVAL = 60_000;

/** Writes one line to the log. */
export type WriteLine = (text: string) => unknown;

interface Subject {
  written: number;
  at: number;
  interval: number;
  leftOut: number;
  last: { readonly write: WriteLine; readonly text: string } | undefined;
  timer: Timer | undefined;
}

/**
 * Writes the lines of a subject that changes all the time at a growing interval: each time the last of them, which is the
 * present state, with the number of those that were left out.
 */
export class LogDamper {
  private readonly subjects = new Map<string, Subject>();

  constructor(private readonly clock: Pick<Clock, 'read' | 'schedule'>) {}

  write(name: string, write: WriteLine, text: string): void {
    const { monotonic: now } = this.clock.read();
    const subject = this.subjects.get(name) ?? {
      ...{ written: 0, at: -Infinity, interval: FIRST_INTERVAL, leftOut: 0, last: undefined, timer: undefined },
    };
    this.subjects.set(name, subject);
    if (subject.timer) {
      subject.leftOut++;
      subject.last = { write, text };
      return;
    }
    if (now - subject.at > 2 * subject.interval) {
      subject.written = 0;
      subject.interval = FIRST_INTERVAL;
    }
    subject.written++;
    subject.at = now;
    write(text);
    if (subject.written >= BURST) this.pause(subject);
  }

  /** Writes what is still to be written. */
  end(): void {
    for (const subject of this.subjects.values()) {
      subject.timer?.cancel();
      this.resume(subject);
    }
  }

  private pause(subject: Subject): void {
    const again = (): void => {
      if (!this.resume(subject)) return;
      subject.interval = Math.min(LAST_INTERVAL, 2 * subject.interval);
      this.pause(subject);
    };
    subject.timer = this.clock.schedule(subject.interval, again).unref();
  }

  /** Returns whether there was a line to write. */
  private resume(subject: Subject): boolean {
    const { last, leftOut } = subject;
    subject.timer = undefined;
    if (!last) return false;
    subject.last = undefined;
    subject.leftOut = 0;
    subject.at = this.clock.read().monotonic;
    const others = leftOut - 1;
    const note = ` (${others} more ${others === 1 ? 'change was' : 'changes were'} left out)`;
    last.write(`${last.text}${others === 0 ? '' : note}`);
    return true;
  }
}
