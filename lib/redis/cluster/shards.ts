import type { Instant } from '../../core/clock.js';
import type { ShardStatus } from '../../core/master.interface.js';
import type { KnownPrimary } from './node-view.js';
import type { PartitionGuard } from './partition-guard.js';
import type { PrimaryRefusals } from './primary-refusals.js';
import { SILENT } from './partition-calls.js';
import { nameOf, type Topology } from './topology.js';
import { MOST_QUESTIONS } from './views.js';

interface KnownCluster {
  readonly topology: Topology;
  readonly guard: PartitionGuard | undefined;
  readonly refusals: PrimaryRefusals;
}

/** What is known about the primaries of a cluster without a request, sorted by their addresses. */
export function shardsOf(cluster: KnownCluster, now: Instant): readonly ShardStatus[] {
  return [...cluster.topology.map.primaries.values()]
    .map((primary) => shardOf(primary, cluster, now))
    .sort((one, other) => (one.address < other.address ? -1 : 1));
}

function shardOf(primary: KnownPrimary, { topology, guard, refusals }: KnownCluster, now: Instant): ShardStatus {
  const { announced, address, node } = topology.reach(primary);
  const served = topology.map.partitionsOf(primary.owner);
  const shard = { address: nameOf(address ?? announced), partitions: served.length };
  if (!node) return { ...shard, state: 'down', reason: topology.fault ?? 'not connected yet' };
  const { trouble } = node;
  if (trouble !== undefined) return { ...shard, state: 'down', reason: trouble };
  if (node.isSilent || node.questions >= MOST_QUESTIONS) return { ...shard, state: 'down', reason: SILENT };
  const refusal = refusals.reasonOf(primary.owner);
  if (refusal !== undefined) return { ...shard, state: 'refused', reason: refusal };
  const waits = served.flatMap((partition) => guard?.states[partition]?.quarantineAt(now, guard.longest) ?? []);
  const [longest] = waits.sort((one, other) => other.remaining - one.remaining);
  if (!longest) return { ...shard, state: 'voting' };
  const share = waits.length === served.length ? '' : `${waits.length} of its ${served.length} partitions: `;
  return { ...shard, state: 'quarantined', reason: `${share}${longest.reason}`, remaining: longest.remaining };
}
