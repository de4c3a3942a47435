import type { Lock } from '../../lib/core/lock.js';
import type { LockLostError } from '../../lib/core/errors.js';
import { now } from './now.js';
import type { Trace } from './trace.js';

/**
 * An extension gives at least the shortest ttl, counted from its start, which is at most a master's timeout before its
 * end: a lock that ends within that many milliseconds after its holder looked has not been extended since.
 */
const SURELY_NOT_EXTENDED = 100;

/**
 * What a holder believes, told so that it is never more than is true.
 *
 * Belief begins when the lock has been granted and ends when the lock is given up, when its signal aborts, or at the end
 * of the validity, whichever comes first. The end of the validity is computed when the holder looks: the moment before
 * it looked, plus what it then has left. A holder that is stopped, or busy, believes no longer than what it saw last;
 * and as a lock that was held before and after was held in between, a later look covers everything before it.
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
    readonly keys: readonly string[],
    asked: number,
    private readonly lock: Lock,
    /** Whether the library extends it. */
    private readonly extended: boolean,
  ) {
    const at = (this.lookedAt = now());
    this.until = at + lock.remaining();
    trace.say({ kind: 'granted', section: name, keys, asked, at, until: this.until });
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

  /** Resolves when the loss of the lock is told. */
  get untilLost(): Promise<void> {
    return this.lost;
  }

  look(): void {
    if (this.isOver) return;
    const at = now();
    const remaining = this.lock.remaining();
    // Looking is a way of being told: then it has been noted.
    if (remaining === 0) return;
    this.lookedAt = at;
    this.until = at + remaining;
    this.trace.say({ kind: 'looked', section: this.name, at, until: this.until });
  }

  /** Gives up what was promised, because a shorter promise is about to be asked for. */
  promiseNothing(): void {
    const at = now();
    if (!this.over) this.trace.say({ kind: 'looked', section: this.name, at, until: Math.min(at, this.until) });
  }

  async token(): Promise<number | undefined> {
    // It is tried for as long as the lock is held, and without extension that is not for long.
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

  /** To be called before the lock is given up. */
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

  /** When the end should have been told; unknown if the lock may have been extended since its holder looked. */
  private get due(): number | undefined {
    return this.extended && now() - this.lookedAt > SURELY_NOT_EXTENDED ? undefined : this.until;
  }
}
