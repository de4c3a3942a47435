import type { KeyNames } from '../keyspace.js';
import type { Master } from '../master.interface.js';
import type { QuorumCall } from './quorum-call.js';

/**
 * Where an acquisition of exclusive keys stands while shared holders have them: on all masters, so that no quorum grants
 * the keys to shared requests that come later.
 */
export class Barrier {
  /** Whether shared holders have refused one of the keys. */
  hasSharedHolders = false;
  private isStanding = false;

  constructor(
    private readonly masters: readonly Master[],
    private readonly names: KeyNames,
    /** The name under which this process listens. */
    private readonly waiter: string,
  ) {}

  /**
   * After an attempt that was refused: stands at the barrier, or renews its entry, if shared holders refuse. One of several
   * keys may be free, and must not be closed for others: they are taken one by one after a while, each with a barrier.
   */
  note({ answered }: QuorumCall, waited: number): void {
    const isShared = answered.some((answer) => answer.kind === 'held' && answer.sharedBy !== undefined);
    if (isShared) this.hasSharedHolders = true;
    if (this.names.keys.length > 1 || (!isShared && !this.isStanding)) return;
    // Protocol 11.6
    this.isStanding = true;
    this.ask(waited);
  }

  /** The next waiter of this process takes over the entry, with its age. */
  passTo(waited: number): void {
    if (this.isStanding) this.ask(waited);
  }

  leave(): void {
    if (this.isStanding) this.ask(undefined);
    this.isStanding = false;
  }

  private ask(waited: number | undefined): void {
    const { keys, barriers } = this.names;
    const request = { op: 'want', keys, barriers, waiter: this.waiter, waited } as const;
    for (const master of this.masters) master.ask(request, () => undefined); // @mutant barrier-on-one-master
  }
}
