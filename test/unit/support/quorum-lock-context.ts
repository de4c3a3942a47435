import { PendingReleases, type QuorumLockContext } from '../../../lib/core/acquire/quorum-lock.js';
import type { Clock } from '../../../lib/core/clock.js';
import { Keyspace } from '../../../lib/core/keyspace.js';
import type { Master } from '../../../lib/core/master.interface.js';
import { resolveSettings } from '../../../lib/core/settings/settings.js';
import { NO_WITNESS } from '../../../lib/core/witness.interface.js';

/** What the quorum locks of one process have in common, with default settings and without a guard. */
export function quorumLockContext(clock: Clock, masters: readonly Master[]): QuorumLockContext {
  return {
    ...{ masters, clock, keyspace: new Keyspace('lock:'), settings: resolveSettings({}, masters.length) },
    ...{ witness: NO_WITNESS, releases: new PendingReleases(), standstill: { total: 0 } },
  };
}
