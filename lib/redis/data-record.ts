import { elapsedBetween, type Instant } from '../core/clock.js';
import { NEW_DATA, type Quarantine } from '../core/master.interface.js';
import type { ServerIdentity } from './replies.js';
import type { Marker } from './guard/marker.js';

// The history of the data is compared at least this often, in milliseconds.
const COMPARISON_INTERVAL = 1_000;

// The data of a server or of a partition, as this process knows it: whether its votes count, and why not.
export abstract class DataRecord {
  // Changes whenever the answers to earlier requests must not count any more.
  epoch = 0;
  replid = '';
  protected comparedAt: Instant | undefined;
  // When the clocks of this process were last found to have stood still, by its monotonic clock.
  private notBefore = -Infinity;

  // `reason`: why votes do not count, while they do not.
  constructor(public reason: string) {}

  // `undefined` while its votes count.
  abstract quarantineAt(now: Instant): Quarantine | undefined;

  // No vote counts until the data has been read anew.
  abstract doubt(reason: string): void;

  // Empty while the last comparison is recent.
  // Protocol 8.1
  historyToCompare(now: Instant): string {
    const isRecent = this.comparedAt !== undefined && elapsedBetween(this.comparedAt, now) <= COMPARISON_INTERVAL;
    return isRecent ? '' : this.replid;
  }

  // Only after a script that has carried out its requests.
  noteComparison(history: string, sent: Instant): void {
    if (history !== this.replid || this.isStale(sent)) return;
    if (this.comparedAt === undefined || sent.monotonic > this.comparedAt.monotonic) this.comparedAt = sent;
  }

  isStale(sent: Instant): boolean {
    return sent.monotonic < this.notBefore;
  }

  // The clocks of this process have stood still: no older comparison counts. `now` is monotonic.
  noteStandstill(now: number): void {
    this.notBefore = now;
    this.comparedAt = undefined;
  }
}

export type Relation =
  | 'known'
  // The same data under another identity: the first replica was attached, or a declared master was restarted.
  | 'renamed'
  // The data may lack acknowledged writes.
  | 'unknown';

// `isDurable`: the operator declares that the server keeps its data across restarts. `nonce` is that of the last data
// that this process accepted at the address; empty if it accepted none.
export function relationOf(
  { marker, run, replid, wasPromoted, replicas }: ServerIdentity,
  { isDurable, nonce }: { readonly isDurable: boolean; readonly nonce: string },
): Relation {
  // Protocol 8.2 and 8.3
  if (!marker) return 'unknown'; // @mutant lost-data-taken-for-known-data
  if (marker.run === run && marker.replid === replid) return 'known'; // @mutant another-run-taken-for-known-data
  // A process without the permission for INFO has only the nonce, and must not question what others know.
  if (run === '') return 'known';
  if (marker.run === '') return 'renamed';
  // The data came from another server, whatever this one keeps.
  if (wasPromoted) return 'unknown'; // @mutant promoted-replica-trusted
  // Attaching the first replica begins a new history of the same data. A promotion does, too, and its trace is lost with
  // the replication backlog: without a replica, there is no proof that the data is the same.
  if (marker.run === run) return replicas > 0 ? 'renamed' : 'unknown';
  // Other data was at this address meanwhile, and acknowledged what this data lacks.
  const isNext = nonce === '' || nonce === marker.nonce; // @mutant declared-without-nonce
  // Protocol 8.8
  return isDurable && isNext ? 'renamed' : 'unknown'; // @mutant durability-inferred
}

export function reasonFor({ marker, run, wasPromoted }: ServerIdentity, before: Marker | undefined): string {
  if (!marker) return before ? 'it lost its data' : NEW_DATA;
  if (wasPromoted) return 'it was promoted from a replica';
  return marker.run === run ? 'its data has another history' : 'it was restarted';
}
