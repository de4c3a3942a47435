import type { DataIdentity } from './data-identity.js';
import type { Reports } from './guard-group.js';
import type { Marker } from './marker.js';

/** What a master knows about another one: its marker, and whether it is quarantined itself. */
interface OtherMarker {
  readonly marker: Marker;
  readonly isYoung: boolean;
}

interface Sizes {
  readonly masters: number;
  /** The `ttl` option, in milliseconds. */
  readonly ttl: number;
}

/** The markers of the other masters whose data is known. */
export function markersOfOthers(identity: DataIdentity, reports: Reports): readonly OtherMarker[] {
  return [...reports].flatMap(([other, report]) => {
    const { marker } = report;
    if (other === identity || other.unknownSince !== undefined || !marker) return [];
    return [{ marker, isYoung: other.isYoungAt(report) }];
  });
}

/** The largest ttl that may be in use, in milliseconds, according to the markers of other masters. Protocol 8.3. */
export function ttlInUse(others: readonly Marker[], { masters, ttl }: Sizes): number {
  const announced = Math.max(ttl, ...others.map(({ maxTtl }) => maxTtl));
  // Each lock was announced on a quorum, but perhaps on a quorum of a shorter list: while a master is added, instances
  // with the old list run. The `maxTtl` of this process does not matter: it does not bound the locks of other processes.
  const areAll = others.length >= masters - 1;
  return areAll ? announced : Math.max(announced, ...others.map(({ knownTtl }) => knownTtl));
}

/** The largest ttl that every master has confirmed, according to the others; `otherwise` where there are no others. */
export function ttlKnownToOthers(identity: DataIdentity, reports: Reports, otherwise: number): number {
  const known = markersOfOthers(identity, reports).map(({ marker }) => marker.knownTtl);
  return known.length > 0 ? Math.max(...known) : otherwise;
}
