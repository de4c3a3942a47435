import { elapsedBetween, type Instant } from '../../core/clock.js';
import type { Quarantine } from '../../core/master.interface.js';
import type { Seal } from './seal.js';

/** What this client knows about the data of one partition, and whether its votes count. */
export class PartitionState {
  /** Changes whenever the answers to earlier requests must not count any more. */
  epoch = 0;
  /** The seal of known data; `undefined` while the data is unknown. */
  seal: Seal | undefined;
  /** The generation of the data that was known last; empty if none was. */
  generation = '';
  /** When the generation of its data last changed: the number of changes in the cluster until then. */
  changedAt = 0;
  private reason = 'its owner is not known yet';
  /** Monotonic time of this process from which votes count. */
  private votesFrom = Infinity;
  /** When the history of the data was last compared. */
  private comparedAt: Instant | undefined;
  /** No older comparison counts: the clocks of this process have stood still. Monotonic, in milliseconds. */
  private notBefore = -Infinity;

  votesAt({ monotonic }: Instant): boolean {
    return this.seal !== undefined && monotonic >= this.votesFrom;
  }

  /** Why it does not vote, and for how long at most; `undefined` when it votes. */
  quarantineAt(now: Instant, longest: number): Quarantine | undefined {
    if (this.votesAt(now)) return undefined;
    const remaining = this.seal ? Math.max(1, Math.ceil(this.votesFrom - now.monotonic)) : longest;
    return { reason: this.reason, remaining };
  }

  /** Lets no answer to an earlier request count. */
  doubt(reason: string): void {
    if (this.seal) this.epoch++;
    this.seal = undefined;
    this.reason = reason;
  }

  /**
   * Accepts the seal of known data.
   *
   * @param left milliseconds until `from`, by the clock of its process
   * @param longest the longest quarantine, in milliseconds
   */
  accept(seal: Seal, now: Instant, { left, longest }: { readonly left: number; readonly longest: number }): void {
    const isSame = seal.nonce === this.seal?.nonce;
    if (isSame && this.votesAt(now)) return;
    const from = now.monotonic + Math.min(Math.max(0, left), longest);
    // The clock of the process may have been set forward while this client watched.
    this.votesFrom = isSame ? Math.max(this.votesFrom, from) : from;
    if (!isSame) this.epoch++;
    if (!isSame) this.comparedAt = undefined;
    this.seal = seal;
    this.generation = seal.generation;
    this.reason = seal.reason;
  }

  /** Whether a script has to compare the history. */
  needsComparison(now: Instant, interval: number): boolean {
    return this.comparedAt === undefined || elapsedBetween(this.comparedAt, now) > interval;
  }

  /** The clocks of this process have stood still: the next script compares the history. */
  forgetComparison({ monotonic }: Instant): void {
    this.comparedAt = undefined;
    this.notBefore = monotonic;
  }

  /** A script that was sent at a moment has compared the history. */
  noteComparison(sent: Instant): void {
    if (sent.monotonic >= Math.max(this.notBefore, this.comparedAt?.monotonic ?? -Infinity)) this.comparedAt = sent;
  }
}
