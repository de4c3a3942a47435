import type { Kind } from '../kinds.js';

/** One kind of fault of a Redis Cluster. */
export interface ShardKind extends Kind {
  /** How many shards it hits. */
  readonly shards: 0 | 1 | 2 | 3;
  /** It needs the bus, of which there is one: no other such fault at the same time. */
  readonly bus?: true;
}

/**
 * Faults during which at most one section believes that it holds a lock. Not among them: `CLUSTER FAILOVER TAKEOVER` of two
 * shards at once, and what else the documentation calls a limit.
 */
export const SHARD_KINDS = {
  'primary killed, back at once and empty': { target: 'master', shards: 1, lasts: [0, 500], forgets: true },
  'primary killed, back after a failover': { target: 'master', shards: 1, lasts: [2_000, 4_500] },
  'shard killed, back empty': { target: 'master', shards: 1, lasts: [0, 800], forgets: true },
  'all primaries killed, back empty': { target: 'master', shards: 3, lasts: [0, 500], forgets: true },
  'failover, graceful': { target: 'master', shards: 1, lasts: [0, 0] },
  'failover, forced': { target: 'master', shards: 1, lasts: [0, 0] },
  'primary stopped': { target: 'master', shards: 1, lasts: [50, 900] },
  'primary stopped beyond a failover': { target: 'master', shards: 1, lasts: [2_000, 4_500] },
  'primary stopped, failover forced': { target: 'master', shards: 1, lasts: [200, 1_500] },
  'slot moved': { target: 'master', shards: 2, bus: true, lasts: [0, 1_500] },
  FLUSHALL: { target: 'master', shards: 1, lasts: [0, 0], forgets: true },
  'bus cut': { target: 'master', shards: 1, bus: true, lasts: [300, 5_000] },
  'worker stopped': { target: 'worker', shards: 0, lasts: [100, 2_500] },
  'worker killed': { target: 'worker', shards: 0, lasts: [0, 0] },
} as const satisfies Record<string, ShardKind>;

export type ShardFault = keyof typeof SHARD_KINDS;
