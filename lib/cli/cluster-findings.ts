import type { ClusterExamination } from './cluster-examination.js';
import type { Examination } from './examination.js';
import { note, problem, type Unplaced } from './finding.js';
import { duration } from './table.js';

/** Fewer primaries elect no replica when one of them fails. */
const ELECTING = 3;

/** Findings about a cluster as a whole. */
export function onCluster({ unserved, unreachable, shards }: ClusterExamination): Unplaced[] {
  const findings: Unplaced[] = unreachable.map(({ address, failure }) =>
    problem(
      `its replica ${address} cannot be reached: ${failure.reason}`,
      'start it, let the network through, or correct what it announces (cluster-announce-ip): after a failover it is asked',
    ),
  );
  if (unserved > 0) {
    const what = `${unserved} of 16384 slots have no primary: locks in them fail`;
    findings.push(problem(what, 'assign them: redis-cli --cluster fix <host:port>'));
  }
  if (shards.length < ELECTING) {
    const what = `it has ${shards.length} ${shards.length === 1 ? 'primary' : 'primaries'}, too few to elect a replica when one fails`;
    findings.push(note(what, 'use three primaries or more'));
  }
  const timeouts = new Set(shards.flatMap(({ shard }) => shard?.nodeTimeout ?? []));
  if (timeouts.size > 1) {
    const values = [...timeouts].sort((one, other) => one - other).join(' and ');
    findings.push(
      problem(`its nodes have different values of cluster-node-timeout: ${values}`, 'set one value on all'),
    );
  }
  return findings;
}

/** Findings about what only a primary of a cluster has. */
export function onShard({ shard }: Examination, { nodeTimeout }: ClusterExamination): Unplaced[] {
  if (!shard) return [];
  const { partitions, replicas, state } = shard;
  const findings: Unplaced[] = [];
  if (state !== undefined && state !== 'ok') {
    const what = `it reports cluster_state:${state}, so it may refuse every lock`;
    findings.push(problem(what, 'CLUSTER NODES shows which primaries are missing: start them, or assign their slots'));
  }
  if (nodeTimeout !== undefined && shard.nodeTimeout !== undefined && nodeTimeout < shard.nodeTimeout) {
    const what = `its cluster-node-timeout is ${duration(shard.nodeTimeout)}, and clusterNodeTimeout only ${duration(nodeTimeout)}: too short a wait after a failover`;
    findings.push(problem(what, `set clusterNodeTimeout to ${shard.nodeTimeout} or more`));
  }
  if (replicas === 0) {
    const what = `it has no replica: when it fails, the locks of its ${partitions} partitions fail until it is back`;
    findings.push(note(what, 'add a replica, or use three independent masters'));
  }
  return findings;
}
