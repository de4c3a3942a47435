import { Refusal } from '../../core/health/refusal.js';
import type { MasterReply, MasterRequest } from '../../core/master.interface.js';

/** What the primaries of a cluster refuse: one of them may be out of memory while the others grant locks. */
export class PrimaryRefusals {
  /** By node id. Only primaries that refuse. */
  private readonly refusals = new Map<string, Refusal>();

  /** Notes the answer of a primary. */
  note(owner: string, request: MasterRequest, answer: MasterReply): void {
    const refusal = this.refusals.get(owner) ?? new Refusal();
    refusal.note(request, answer);
    if (refusal.reason === undefined) this.refusals.delete(owner);
    else this.refusals.set(owner, refusal);
  }

  /** Whether nothing is known against any primary. */
  get isEmpty(): boolean {
    return this.refusals.size === 0;
  }

  /** What a primary refuses; `undefined` if nothing is known against it. */
  reasonOf(owner: string): string | undefined {
    return this.refusals.get(owner)?.reason;
  }

  /** What the first of these primaries refuses, if all of them refuse. */
  commonReason(owners: Iterable<string>): string | undefined {
    let first: string | undefined;
    for (const owner of owners) {
      const reason = this.reasonOf(owner);
      if (reason === undefined) return undefined;
      first ??= reason;
    }
    return first;
  }
}
