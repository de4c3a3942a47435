import { partitionOf } from '../../../lib/redis/cluster/cluster-map.js';
import { ownLine } from '../../support/cluster-lines.js';
import { startCluster, type TestCluster } from '../../support/cluster.js';
import { isGhost, keysAt } from '../cluster.js';
import { type Evidence, type GhostKey, PERMITS_OF } from '../evidence.js';
import { type Plan } from '../plan.js';
import { type Arena, runIn, type RunOptions } from '../run.js';
import { carryOutOn } from './faults.js';
import { SHARD_KINDS, type ShardFault } from './kinds.js';
import { shardPlanOf, SHARDS } from './plan.js';

export interface ShardedOptions extends RunOptions {
  readonly milliseconds: number;
  /** Replaces the plan that the seed gives. */
  readonly plan?: Plan<ShardFault>;
}

/** On all three shards. Two of them are in one partition. */
const RESOURCES = ['a', 'b', 'c', 'd', '{b}2'];
/** In milliseconds: short, so that a run has several failovers. */
const NODE_TIMEOUT = 1_000;
const SLOTS_OF_PARTITION = 64;

/** Starts a Redis Cluster and workers, carries out the plan, ends everything, and returns the evidence. */
export async function tortureCluster(options: ShardedOptions): Promise<Evidence> {
  await using cluster = await startCluster({ primaries: SHARDS, nodeTimeout: NODE_TIMEOUT, partitions: true });
  const slots = [...RESOURCES, PERMITS_OF].map((resource) => partitionOf(resource) * SLOTS_OF_PARTITION);
  const arena: Arena<ShardFault> = {
    masters: [`redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`],
    resources: RESOURCES,
    kinds: SHARD_KINDS,
    carryOut: (world, fault) => carryOutOn({ cluster, slots }, world, fault),
    ghosts: () => ghostsOf(cluster),
  };
  return await runIn(arena, options.plan ?? shardPlanOf(options), options);
}

async function ghostsOf(cluster: TestCluster): Promise<GhostKey[]> {
  await cluster.settled();
  const own = await Promise.all(cluster.nodes.map(ownLine));
  // Replicas have the keys of their primaries.
  const primaries = own.filter(({ isPrimary }) => isPrimary).map(({ id }) => cluster.node(id));
  const keys = await Promise.all(primaries.map(({ server }) => keysAt(server.port)));
  return keys.flatMap((list, master) => list.filter(isGhost).map((key) => ({ master, ...key })));
}
