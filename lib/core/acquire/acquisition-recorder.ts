import type { Clock } from '../clock.js';
import type { LockLostError } from '../errors.js';
import { around } from '../combined-observer.js';
import type { AcquisitionKind, AcquisitionObserver, AcquisitionProgress, LockObserver, OnHeld } from '../observer.js';

/** What an observer learns at the beginning of an acquisition. */
interface Observed {
  readonly resources: readonly string[];
  readonly onHeld: OnHeld;
  readonly kind: AcquisitionKind;
}

/** Measures one acquisition, and the lock that results from it, for an observer. Without an observer, there is none. */
export class AcquisitionRecorder {
  private since: number;

  private constructor(
    private readonly observer: AcquisitionObserver,
    private readonly clock: Clock,
  ) {
    this.since = this.now;
  }

  static begin(
    observer: LockObserver,
    clock: Clock,
    { resources, onHeld, kind }: Observed,
  ): AcquisitionRecorder | undefined {
    const listener = observer.acquiring?.(resources, onHeld, kind);
    return listener && new AcquisitionRecorder(listener, clock);
  }

  granted(attempts: number, waited = 0): void {
    this.observer.granted?.(this.progress(attempts, waited));
    this.since = this.now;
  }

  failed(error: unknown, attempts: number, waited = 0): void {
    this.observer.failed?.(error, this.progress(attempts, waited));
  }

  ended(loss: LockLostError | undefined): void {
    this.observer.ended?.(this.now - this.since, loss);
  }

  /** Wraps work so that it runs inside the hook of the observer. */
  around<T>(work: () => T): () => T {
    return around(work, this.observer);
  }

  private progress(attempts: number, waited: number): AcquisitionProgress {
    return { attempts, waited, taken: this.now - this.since };
  }

  /** The monotonic clock is enough for measurements, and the wall clock has a resolution of only one millisecond. */
  private get now(): number {
    return this.clock.read().monotonic;
  }
}
