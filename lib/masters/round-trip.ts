import { LONGEST_RESERVATION } from './master.interface.js';

// Of requests that do not wait, one in so many is measured: the clock is read twice for it.
const MEASURED_EVERY = 16;
// A longer round trip counts at once, a shorter one by degrees.
const KEPT = 3 / 4;
// The notification, the request and its answer take one and a half. The rest is for what varies.
const NEEDED = 3;
// In milliseconds: a process may be busy when it is notified.
const SHORTEST_RESERVATION = 50;

// How long the answers of one master take.
export class RoundTrip {
  private left = 0;
  private milliseconds = 0;

  // Whether a request is to be measured.
  count(isWaiting: boolean): boolean {
    if (!isWaiting && this.left-- > 0) return false;
    this.left = MEASURED_EVERY - 1;
    return true;
  }

  note(milliseconds: number): void {
    this.milliseconds = Math.max(milliseconds, this.milliseconds * KEPT);
  }

  // Milliseconds for which a released key has to be reserved for this process.
  // Protocol 5.4
  get reservation(): number {
    return Math.min(LONGEST_RESERVATION, Math.max(SHORTEST_RESERVATION, Math.ceil(NEEDED * this.milliseconds))); // @mutant reservation-ignores-distance
  }
}
