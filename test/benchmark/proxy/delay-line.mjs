/** A timer of Node may fire this much too late, in milliseconds; the rest of a delay is spent in naps. */
const TIMER_PRECISION = 2;
/** A nap as a share of the delay. What arrives during a nap is noticed late, by a part of it. */
const NAP_SHARE = 0.02;

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Delivers everything in the order in which it came, each after the delay at that time. */
export class DelayLine {
  /** In milliseconds, also a fraction of one. */
  delay = 0;
  #first;
  #last;

  /** @param deliver called when the delay is over, at once if there is none */
  push(deliver) {
    if (this.delay === 0 && !this.#first) {
      deliver();
      return;
    }
    const entry = { due: performance.now() + this.delay, deliver };
    const asleep = this.#first !== undefined;
    if (asleep) this.#last.next = entry;
    else this.#first = entry;
    this.#last = entry;
    if (!asleep) this.#sleep();
  }

  #sleep() {
    const left = this.#first.due - performance.now();
    if (left > TIMER_PRECISION) {
      setTimeout(() => this.#wake(), left - TIMER_PRECISION);
      return;
    }
    // Gives the processor away, unlike a busy loop: servers run on the same one. Sockets are read between two naps.
    if (left > 0) Atomics.wait(nap, 0, 0, Math.min(left, this.delay * NAP_SHARE));
    setImmediate(() => this.#wake());
  }

  #wake() {
    for (const now = performance.now(); this.#first && this.#first.due <= now; this.#first = this.#first.next) {
      this.#first.deliver();
    }
    if (this.#first) this.#sleep();
  }
}
