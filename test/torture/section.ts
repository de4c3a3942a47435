import type { Lock } from '../../lib/core/lock.js';
import type { LockLostError } from '../../lib/core/errors.js';
import { now } from './now.js';
import type { Claim, Trace } from './trace.js';

/**
 * An extension gives at least the shortest ttl, counted from its start, which is at most a master's timeout before its
 * end. A lock that ends within this many milliseconds after its holder looked has therefore not been extended since.
 */
const SURELY_NOT_EXTENDED = 100;

/**
 * Records what a holder believes, and never more than is true.
 *
 * Belief begins when the lock has been granted. It ends when the lock is released, when its signal aborts, or at the
 * end of the validity, whichever comes first. The holder computes the end of the validity when it looks: the time
 * before the look, plus the remaining time. A holder that is stopped, or busy, believes no longer than it saw last. A
 * lock that was held before and after a period was held throughout it, so a later look covers everything before it.
 */
export class Section {
  private until: number;
  private lookedAt: number;
  private over = false;
  private known: number | undefined;
  private readonly lost: Promise<void>;

  constructor(
    private readonly trace: Trace,
    readonly name: string,
    readonly claim: Claim,
    asked: number,
    private readonly lock: Lock,
    /** Whether the library extends it. */
    private readonly extended: boolean,
  ) {
    const at = (this.lookedAt = now());
    this.until = at + lock.remaining();
    trace.say({ kind: 'granted', section: name, ...claim, asked, at, until: this.until });
    this.lost = new Promise((resolve) => {
      const lose = (): void => {
        this.noteLoss();
        resolve();
      };
      if (lock.signal.aborted) lose();
      else lock.signal.addEventListener('abort', lose, { once: true });
    });
  }

  get knownToken(): number | undefined {
    return this.known;
  }

  get isOver(): boolean {
    return this.over;
  }

  /** Resolves when the loss of the lock is reported. */
  get untilLost(): Promise<void> {
    return this.lost;
  }

  look(): void {
    if (this.isOver) return;
    const at = now();
    const remaining = this.lock.remaining();
    // Looking may itself report the loss. In that case, the loss has already been recorded.
    if (remaining === 0) return;
    this.lookedAt = at;
    this.until = at + remaining;
    this.trace.say({ kind: 'looked', section: this.name, at, until: this.until });
  }

  /** Withdraws the recorded belief before the holder asks for a shorter ttl. */
  promiseNothing(): void {
    const at = now();
    if (!this.over) this.trace.say({ kind: 'looked', section: this.name, at, until: Math.min(at, this.until) });
  }

  /** The fencing token; `undefined` for a shared section, and if the lock ends first. */
  async token(): Promise<number | undefined> {
    if (this.claim.mode === 'shared') return undefined;
    // The library retries while the lock is held, which is not long without extension.
    const asked = this.trace.ask('token', this.lock.remaining() + 1_000);
    try {
      const token = await this.lock.fencingToken();
      this.trace.say({ kind: 'token', section: this.name, at: now(), token });
      asked.settle('known');
      this.known = token;
      return token;
    } catch (error) {
      asked.settle((error as Error).name);
      return undefined;
    }
  }

  /** To be called before the lock is released. */
  leave(): void {
    if (this.over) return;
    this.over = true;
    this.trace.saySince(this.due, { kind: 'left', section: this.name, why: 'released' });
  }

  private noteLoss(): void {
    if (this.over) return;
    this.over = true;
    const why = (this.lock.signal.reason as LockLostError).cause;
    this.trace.saySince(this.due, { kind: 'lost', section: this.name, why });
  }

  /** When the end should have been reported; unknown if the lock may have been extended since its holder looked. */
  private get due(): number | undefined {
    return this.extended && now() - this.lookedAt > SURELY_NOT_EXTENDED ? undefined : this.until;
  }
}
