import type { Instant } from '../../core/clock.js';
import type { DataIdentity } from './data-identity.js';
import type { GuardGroup, Reports } from './guard-group.js';

/** New masters vote after this many milliseconds without a veto: longer than a contact interval, a reconnect and a command. */
export const EARLY_AFTER = 2_500; // @mutant early-vote-too-early
/** With fewer masters, all of them could be new because each of them lost its data. */
export const EARLY_FROM = 3;

/** All masters as this client first saw all of them new. */
interface Sighting {
  readonly markers: string;
  readonly since: number;
}

/** A reason to look again after some milliseconds, or masters that may vote now. */
type EarlyVoteProgress =
  | { readonly readAfter: number }
  | { readonly vote: readonly DataIdentity[] }
  /** Not all masters are new and unvetoed. */
  | undefined;

/**
 * Masters that were started together vote early. If this client sees new markers on all of them, and none of them has
 * changed or was vetoed for {@link EARLY_AFTER}, no process holds a lock: a holder would have vetoed one of them.
 */
export class EarlyVote {
  private sighting: Sighting | undefined;

  constructor(private readonly group: GuardGroup) {}

  /** This process holds a lock: what was seen before does not count. */
  interrupt(): void {
    this.sighting = undefined;
  }

  /** @param asked when the reports were requested: a report shows no veto that came later, however late it arrives */
  observe(reports: Reports, asked: Instant): EarlyVoteProgress {
    const { group } = this;
    const all = [...reports];
    const isQuiet =
      group.identities.length >= EARLY_FROM &&
      all.length === group.identities.length &&
      !group.isEngaged &&
      all.every(([{ nonce }, { marker }]) => marker && !marker.isVetoed && marker.nonce === nonce);
    const young = all.filter(([identity, report]) => identity.isYoungAt(report));
    if (!isQuiet || young.length === 0) {
      this.sighting = undefined;
      return undefined;
    }
    const seen = all.map(([{ server }, { marker }]) => `${server.name} ${marker?.nonce ?? ''}`).sort();
    const markers = seen.join('\n');
    if (this.sighting?.markers !== markers) {
      // All of them have to be new when it begins. One whose own quarantine ends meanwhile still shows a veto.
      this.sighting = young.length === all.length ? { markers, since: group.now } : undefined;
      return undefined;
    }
    const left = EARLY_AFTER - (asked.monotonic - this.sighting.since);
    return left > 0 ? { readAfter: left } : { vote: young.map(([identity]) => identity) };
  }
}
