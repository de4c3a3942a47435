import type { ServerIdentity } from '../identity.js';
import type { Marker } from './marker.js';

/** How the data of a server relates to what its marker says. */
export type Relation =
  /** The marker belongs to this run and this history. */
  | 'known'
  /** The same data under another identity: the first replica was attached, or a declared master was restarted. */
  | 'renamed'
  /** The data may lack acknowledged writes. */
  | 'unknown';

/**
 * How the data of a server relates to its marker, according to a report.
 *
 * @param isDurable whether the operator declares that the server keeps its data across restarts
 * @param nonce of the last data that this process accepted at the address; empty if it accepted none
 */
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

/** Why the data of a server is unknown. */
export function reasonFor({ marker, run, wasPromoted }: ServerIdentity, before: Marker | undefined): string {
  if (!marker) return before ? 'it lost its data' : 'its data is new to all processes';
  if (wasPromoted) return 'it was promoted from a replica';
  return marker.run === run ? 'its data has another history' : 'it was restarted';
}
