import type { ClusterSettings, NodeAddress } from '../redis/cluster/cluster-source.js';
import { type NodeView, parseNodes, viewFromSlots } from '../redis/cluster/node-view.js';
import { nameOf } from '../redis/cluster/topology.js';
import { Contact, type Failure, isFailure, type Outcome } from './contact.js';

/** What a node of a cluster knows about the others. */
export interface ClusterNodes {
  readonly view: NodeView;
  /** The answer from which the view was read, with the replicas: the text of CLUSTER NODES, or the list of CLUSTER SLOTS. */
  readonly answer: unknown;
  /** A node that announces no host is reached by that of the node that was asked. */
  readonly asked: NodeAddress;
}

/** A connection to a node of a cluster, which is not open yet. */
export function contactTo(cluster: ClusterSettings, address: NodeAddress, timeout: number): Contact {
  return new Contact({ name: nameOf(address), client: cluster.clientFor(address) }, timeout);
}

/** The address by which this process reaches a node. */
export function reachable(
  cluster: ClusterSettings,
  { asked }: ClusterNodes,
  { host, port }: NodeAddress,
): NodeAddress | Failure {
  try {
    return cluster.translate({ host: host === '' ? asked.host : host, port });
  } catch (error) {
    return { code: 'UNREACHABLE', reason: error instanceof Error ? error.message : String(error), isPermanent: true };
  }
}

/** Asks the given nodes for the others, and takes the newest answer. */
export async function findNodes(cluster: ClusterSettings, timeout: number): Promise<ClusterNodes | Failure> {
  const answers = await Promise.all(cluster.seeds.map((seed) => askNode(cluster, seed, timeout)));
  const known = answers.filter((answer): answer is ClusterNodes => !('code' in answer));
  const [newest] = known.sort((one, other) => newestEpoch(other.view) - newestEpoch(one.view));
  if (newest) return newest;
  const failures = answers.filter((answer): answer is Failure => 'code' in answer);
  // Waiting can help as long as it can help one of the nodes.
  return failures.find(({ isPermanent }) => !isPermanent) ?? failures[0] ?? NO_NODE;
}

const NO_NODE: Failure = Object.freeze({ code: 'UNREACHABLE', reason: 'it has no nodes' });

async function askNode(cluster: ClusterSettings, seed: NodeAddress, timeout: number): Promise<ClusterNodes | Failure> {
  const contact = contactTo(cluster, seed, timeout);
  try {
    const failure = await contact.open();
    if (failure) return named(contact, failure);
    const asksSlots = cluster.nodeTimeout !== undefined;
    const outcome: Outcome = await contact.call('CLUSTER', asksSlots ? 'SLOTS' : 'NODES');
    if (isFailure(outcome)) return named(contact, outcome);
    const { value: answer } = outcome;
    const view = asksSlots ? viewFromSlots(answer) : parseNodes(String(answer));
    if (view.primaries.length === 0) return named(contact, { code: 'UNREACHABLE', reason: 'it knows no primary' });
    return { view, answer, asked: seed };
  } finally {
    contact.close();
  }
}

function named({ name }: Contact, failure: Failure): Failure {
  return { ...failure, reason: `${name}: ${failure.reason}` };
}

function newestEpoch({ primaries }: NodeView): number {
  return Math.max(0, ...primaries.map(({ epoch }) => epoch));
}
