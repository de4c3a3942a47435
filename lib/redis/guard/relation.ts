import type { ServerIdentity } from '../identity.js';
import type { Marker } from './marker.js';

/** How the data of a server relates to what its marker says. */
export type Relation =
  /** The marker belongs to this run and this history. */
  | 'known'
  /** The same data under another identity: the first replica was attached, or a durable server was restarted. */
  | 'renamed'
  /** The data may lack acknowledged writes. */
  | 'unknown';

/** How the data of a server relates to its marker, according to a report. */
export function relationOf(
  { marker, run, replid, wasPromoted, replicas }: ServerIdentity,
  { isDurable, syncsAlways }: { readonly isDurable: boolean; readonly syncsAlways: boolean },
): Relation {
  if (!marker) return 'unknown'; // @mutant lost-data-taken-for-known-data
  if (marker.run === run && marker.replid === replid) return 'known'; // @mutant another-run-taken-for-known-data
  // A process without the permission for INFO has only the nonce, and must not question what others know.
  if (run === '') return 'known';
  if (isDurable || marker.run === '') return 'renamed';
  // Attaching the first replica begins a new history of the same data. A promotion does, too, and its trace is lost with
  // the replication backlog: without a replica, there is no proof that the data is the same.
  if (marker.run === run) return wasPromoted || replicas === 0 ? 'unknown' : 'renamed';
  return marker.isDurable && syncsAlways && !wasPromoted ? 'renamed' : 'unknown';
}

/** Why the data of a server is unknown. */
export function reasonFor({ marker, run, wasPromoted }: ServerIdentity, before: Marker | undefined): string {
  if (!marker) return before ? 'it lost its data' : 'its data is new to all processes';
  if (wasPromoted) return 'it was promoted from a replica';
  return marker.run === run ? 'its data has another history' : 'it was restarted';
}
