import type { Settings } from '../core/settings/settings.js';
import { ClusterNames } from '../redis/cluster/cluster-names.js';
import { faultOfNode } from '../redis/cluster/cluster-node.js';
import type { ClusterSettings } from '../redis/cluster/cluster-source.js';
import { addressIn, type KnownPrimary } from '../redis/cluster/node-view.js';
import { reasonForSeal, SEAL_FIELDS, sealFrom } from '../redis/cluster/seal.js';
import { nameOf } from '../redis/cluster/topology.js';
import type { ServerIdentity } from '../redis/identity.js';
import { type ClusterNodes, contactTo, findNodes, reachable } from './cluster-contacts.js';
import { type Contact, type Failure, isFailure } from './contact.js';
import { configured, type Examination, examineServer, nothingKnown } from './examination.js';

const SLOTS = 16_384;

/** What the doctor finds out about a cluster. */
export interface ClusterExamination {
  /** Ids of all nodes: clusters with a common one are one cluster. */
  readonly ids: readonly string[];
  /** The primaries that have slots. */
  readonly shards: readonly Examination[];
  /** Number of slots without a primary. */
  readonly unserved: number;
  /** Replicas that this process cannot reach. */
  readonly unreachable: readonly { readonly address: string; readonly failure: Failure }[];
  /** `clusterNodeTimeout` in milliseconds, if it was given. */
  readonly nodeTimeout: number | undefined;
}

/** What only a primary of a cluster has. */
export interface ShardFacts {
  readonly partitions: number;
  readonly replicas: number;
  /** Its `cluster_state`. */
  readonly state: string | undefined;
  /** Its `cluster-node-timeout` in milliseconds. */
  readonly nodeTimeout: number | undefined;
  /** What its seals mean for its votes; `undefined` if they could not be read. */
  readonly standing: ShardStanding | undefined;
}

/** What the seals of a primary mean for its votes. */
export interface ShardStanding {
  /** Whether any application has met it. */
  readonly isMet: boolean;
  /** Milliseconds until all of its partitions vote; `undefined` if a process has to connect to it first. */
  readonly wait: number | undefined;
  /** Why its votes do not count. */
  readonly reason: string;
}

/** Examines all primaries of a cluster, each over a new connection. */
export async function examineCluster(
  cluster: ClusterSettings,
  settings: Settings,
  timeout: number,
): Promise<Examination> {
  const nodes = await findNodes(cluster, timeout);
  if ('code' in nodes) return nothingKnown(cluster.name, nodes);
  const replicas = replicasIn(nodes.answer);
  const examine = (primary: KnownPrimary): Promise<Examination> => {
    const count = replicas.filter((replica) => replica.primary === primary.owner).length;
    return examineShard(primary, { cluster, nodes, settings, timeout, replicas: count });
  };
  const shards = await Promise.all(nodes.view.primaries.map(examine));
  const tried = await Promise.all(replicas.map((replica) => tryReplica(replica, cluster, nodes, timeout)));
  const served = nodes.view.primaries.flatMap(({ ranges }) => ranges).map(([first, last]) => last - first + 1);
  return {
    ...nothingKnown(cluster.name),
    cluster: {
      ids: nodes.view.ids,
      shards: shards.sort((one, other) => (one.master < other.master ? -1 : 1)),
      unserved: SLOTS - served.reduce((sum, count) => sum + count, 0),
      unreachable: tried.flatMap((one) => one ?? []),
      nodeTimeout: cluster.nodeTimeout,
    },
  };
}

interface Surroundings {
  readonly cluster: ClusterSettings;
  readonly nodes: ClusterNodes;
  readonly settings: Settings;
  readonly timeout: number;
  readonly replicas: number;
}

async function examineShard(primary: KnownPrimary, surroundings: Surroundings): Promise<Examination> {
  const { cluster, nodes, settings, timeout, replicas } = surroundings;
  const served = nodes.view.claims.flatMap((claim, partition) => (claim?.owner === primary.owner ? [partition] : []));
  const unknown: ShardFacts = {
    ...{ partitions: served.length, replicas, state: undefined, nodeTimeout: undefined, standing: undefined },
  };
  const address = reachable(cluster, nodes, primary);
  if ('code' in address) return { ...nothingKnown(nameOf(primary), address), shard: unknown };
  const contact = contactTo(cluster, address, timeout);
  try {
    const unreachable = await contact.open();
    if (unreachable) return { ...nothingKnown(contact.name, unreachable), shard: unknown };
    const names = new ClusterNames(settings.keyPrefix);
    const [partition = 0] = served;
    const facts = await factsOn(contact);
    let standing: ShardStanding | undefined;
    const examined = await examineServer(contact, settings, {
      stored: (name) => names.inPartition(partition, name),
      faultOf: (report) => faultOfNode(report),
      subcommands: cluster.nodeTimeout === undefined ? ['NODES', 'MYID', 'INFO'] : ['SLOTS', 'MYID'],
      reported: async (report) => {
        standing = await standingOn(contact, { names, served, primary, report });
      },
    });
    return { ...examined, shard: { ...unknown, ...facts, standing } };
  } finally {
    contact.close();
  }
}

async function factsOn(contact: Contact): Promise<Pick<ShardFacts, 'state' | 'nodeTimeout'>> {
  const info = await contact.call('CLUSTER', 'INFO');
  const state = isFailure(info) ? undefined : /^cluster_state:(\w+)/m.exec(String(info.value))?.[1];
  const nodeTimeout = await configured(contact, 'cluster-node-timeout');
  return { state, nodeTimeout: nodeTimeout === undefined ? undefined : Number(nodeTimeout) };
}

interface Sealed {
  readonly names: ClusterNames;
  readonly served: readonly number[];
  readonly primary: KnownPrimary;
  readonly report: ServerIdentity;
}

/** Judges the data of a primary as a process would that connects to it now. */
async function standingOn(
  contact: Contact,
  { names, served, primary, report }: Sealed,
): Promise<ShardStanding | undefined> {
  const outcomes = await Promise.all(
    served.map((partition) => contact.call('HMGET', names.sealOf(partition), ...SEAL_FIELDS)),
  );
  if (outcomes.some(isFailure)) return undefined;
  const seals = outcomes.map((outcome) => sealFrom('value' in outcome ? (outcome.value as (string | null)[]) : []));
  const unknown = seals.map((seal) => reasonForSeal(seal, report, primary)).find((reason) => reason !== undefined);
  const isMet = seals.some((seal) => seal !== undefined);
  if (unknown !== undefined) return { isMet, wait: undefined, reason: `${unknown}, and no process has met it since` };
  const [last] = seals.flatMap((seal) => seal ?? []).sort((one, other) => other.from - one.from);
  return { isMet, wait: Math.max(0, (last?.from ?? 0) - report.time), reason: last?.reason ?? '' };
}

interface Replica {
  readonly primary: string;
  readonly host: string;
  readonly port: number;
}

/** Reads the replicas from the answer to CLUSTER NODES, or from the one to CLUSTER SLOTS. */
function replicasIn(answer: unknown): readonly Replica[] {
  return typeof answer === 'string' ? replicasInNodes(answer) : replicasInSlots(answer);
}

function replicasInNodes(text: string): readonly Replica[] {
  return text.split('\n').flatMap((line) => {
    const [, address = '', flags = '', primary = '-'] = line.trim().split(' ');
    const isKnown = flags.split(',').includes('slave') && !/handshake|noaddr/.test(flags);
    return isKnown ? [{ primary, ...addressIn(address) }] : [];
  });
}

function replicasInSlots(answer: unknown): readonly Replica[] {
  const entries = answer as [number, number, ...[string | null, number, string][]][];
  const found = entries.flatMap(([, , primary, ...others]) =>
    others.map(([host, port, id]): [string, Replica] => [id, { primary: primary?.[2] ?? '', host: host ?? '', port }]),
  );
  return [...new Map(found).values()];
}

async function tryReplica(
  replica: Replica,
  cluster: ClusterSettings,
  nodes: ClusterNodes,
  timeout: number,
): Promise<{ readonly address: string; readonly failure: Failure } | undefined> {
  const address = reachable(cluster, nodes, replica);
  if ('code' in address) return { address: nameOf(replica), failure: address };
  const contact = contactTo(cluster, address, timeout);
  try {
    const failure = await contact.open();
    return failure && { address: contact.name, failure };
  } finally {
    contact.close();
  }
}
