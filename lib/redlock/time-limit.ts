import type { Clock, Instant, Timer } from './clock.js';

// In milliseconds: timers have this resolution, and one that is less late than that was on time.
const ON_TIME = 1;

interface TimeLimitOptions {
  readonly clock: Pick<Clock, 'read' | 'schedule' | 'afterInput' | 'afterTurn'>;
  // Milliseconds.
  readonly limit: number;
  // Called when the time is over, unless it is cancelled before.
  readonly end: () => void;
  // A reading of this turn of the event loop, if there is one.
  readonly now?: Instant | undefined;
}

interface Turn {
  // By the monotonic clock; absent while it lasts.
  ended: number | undefined;
}

// The last one, and its clock. While it lasts, it serves any number of requests, and nothing keeps the event loop from
// waiting for input.
let last: { readonly clock: object; readonly turn: Turn } | undefined;

function turnOf(clock: TimeLimitOptions['clock']): Turn {
  if (last?.clock === clock && last.turn.ended === undefined) return last.turn;
  const turn: Turn = { ended: undefined };
  last = { clock, turn };
  clock.afterTurn(() => {
    turn.ended = clock.read().monotonic;
    if (last?.turn === turn) last = undefined;
  });
  return turn;
}

// For an answer from a server. It begins when the turn of the event loop ends in which this was asked, because it may only
// be written then, and time in which this process does not run is not charged to the server: what has arrived is read
// before the end, and a timer that is late extends the limit once, by as much, and at most by the limit.
// Protocol 4.1
export class TimeLimit implements Timer {
  private readonly clock: TimeLimitOptions['clock'];
  private readonly limit: number;
  private readonly end: () => void;
  private readonly asked: Instant;
  private readonly turn: Turn;
  private timer: Timer;
  private isOver = false;
  private isRef = true;
  // Milliseconds by which the timer was late.
  private late = 0;

  constructor({ clock, limit, end, now = clock.read() }: TimeLimitOptions) {
    this.clock = clock;
    this.limit = limit;
    this.end = end;
    this.asked = now;
    this.turn = turnOf(clock);
    this.timer = clock.schedule(limit, this.fire.bind(this), 0, now);
  }

  // Milliseconds during which this process could neither write nor read, as far as that is noticed.
  get blocked(): number {
    return this.begun - this.asked.monotonic + this.late;
  }

  // Milliseconds, also if it was cancelled.
  get left(): number {
    return Math.max(0, this.limit - (this.clock.read().monotonic - this.begun));
  }

  cancel(): void {
    this.isOver = true;
    this.timer.cancel();
  }

  unref(): this {
    this.isRef = false;
    this.timer.unref();
    return this;
  }

  private get begun(): number {
    return this.turn.ended ?? this.asked.monotonic;
  }

  // A timer may fire before the turn has ended in which it was set.
  private fire(): void {
    const now = this.clock.read().monotonic;
    this.clock.afterInput(() => this.expire(now));
  }

  private expire(firedAt: number): void {
    if (this.isOver) return;
    const late = firedAt - this.begun - this.limit;
    if (late < 0) this.goOn(-late);
    else if (this.late === 0 && late >= ON_TIME) {
      this.late = late;
      this.goOn(Math.min(late, this.limit));
    } else {
      this.isOver = true;
      this.end();
    }
  }

  private goOn(delay: number): void {
    this.timer = this.clock.schedule(delay, () => this.fire());
    if (!this.isRef) this.timer.unref();
  }
}
