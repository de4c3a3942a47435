import type { Instant } from '../../core/clock.js';
import type { DataIdentity } from './data-identity.js';
import type { GuardGroup, Reports } from './guard-group.js';

/** New masters vote after this many milliseconds without a veto: longer than a contact interval, a reconnect and a command. */
export const EARLY_AFTER = 2_500; // @mutant early-vote-too-early
/** With fewer masters, all of them could be new because each of them lost its data. */
export const EARLY_FROM = 3;

/** Share by which the clock of a server may run slower than that of this process, because it is being corrected. */
const SLEWED = 0.002;
/** Times of servers are in whole milliseconds. */
const ROUNDED = 2;

/** All masters as this client first saw all of them new. */
interface Sighting {
  readonly markers: string;
  readonly since: number;
  /** The times of the servers in these reports, in milliseconds. */
  readonly times: ReadonlyMap<DataIdentity, number>;
}

/** A reason to look again after some milliseconds, or masters that may vote now. */
type EarlyVoteProgress =
  | { readonly readAfter: number }
  | { readonly vote: readonly DataIdentity[] }
  /** Not all masters are new and unvetoed. */
  | undefined;

/**
 * Masters that were started together vote early. If this client sees new markers on all of them, and none of them has
 * changed or was vetoed for {@link EARLY_AFTER}, no process holds a lock: a holder would have vetoed one of them. That time
 * has to pass by the clock of this process and by those of all servers, because a clock may jump, and the vote of the
 * masters begins for all processes.
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
      group.clusters.length === 0 &&
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
      const times = new Map(all.map(([identity, { time }]) => [identity, time]));
      this.sighting = young.length === all.length ? { markers, since: group.now, times } : undefined;
      return undefined;
    }
    const { since, times } = this.sighting;
    const byServers = all.map(([identity, { time }]) => time - (times.get(identity) ?? time) + ROUNDED);
    const passed = Math.min(asked.monotonic - since, Math.min(...byServers) / (1 - SLEWED));
    const left = EARLY_AFTER - passed;
    return left > 0 ? { readAfter: left } : { vote: young.map(([identity]) => identity) };
  }
}
