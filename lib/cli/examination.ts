import { Keyspace } from '../core/keyspace.js';
import { SystemRandom } from '../runtime/system-random.js';
import type { Settings } from '../core/settings/settings.js';
import { faultOf, parseInfo, parseServerIdentity, type ServerIdentity } from '../redis/replies.js';
import { REPORT } from '../redis/scripts/report.lua.js';
import {
  type ClusterNodes,
  type Contact,
  contactTo,
  type Failure,
  findNodes,
  isFailure,
  reachable,
} from './contact.js';
import { type MissingPermission, missingPermissions } from './permissions.js';
import { ClusterNames } from '../redis/cluster/cluster-names.js';
import { faultOfNode } from '../redis/cluster/cluster-node.js';
import type { ClusterSettings } from '../redis/cluster/cluster-source.js';
import { addressIn, type KnownPrimary } from '../redis/cluster/cluster-map.js';
import { reasonForSeal, SEAL_FIELDS, sealFrom } from '../redis/cluster/partition-guard.js';
import { nameOf } from '../redis/cluster/topology.js';

/** Bounds on how far a server's clock is ahead of the local clock, in milliseconds. */
export interface ClockOffset {
  readonly least: number;
  readonly most: number;
}

/** One reading of a server's clock, taken at some moment between two readings of the local clock. */
interface ClockSample {
  readonly sent: number;
  readonly received: number;
  readonly time: number;
}

/** Clocks are read in whole milliseconds. */
const RESOLUTION = 1;

/** The offset that all samples together allow. */
export function offsetOf(samples: readonly ClockSample[]): ClockOffset | undefined {
  if (samples.length === 0) return undefined;
  const least = Math.max(...samples.map(({ received, time }) => time - received)) - RESOLUTION;
  const most = Math.min(...samples.map(({ sent, time }) => time - sent)) + RESOLUTION;
  // The bounds cross if a clock was set meanwhile.
  return least <= most ? { least, most } : { least: most, most: least };
}

export function middleOf({ least, most }: ClockOffset): number {
  return (least + most) / 2;
}

/** The certain distance of a clock from another one, in milliseconds; positive if the clock is ahead. */
export function certainDistance(clock: ClockOffset, reference: ClockOffset): number {
  if (clock.least > reference.most) return clock.least - reference.most;
  return clock.most < reference.least ? clock.most - reference.least : 0;
}

/** The median offset: the one that most clocks agree on, if most of them agree. */
export function medianOf(offsets: readonly ClockOffset[]): ClockOffset | undefined {
  const sorted = [...offsets].sort((a, b) => middleOf(a) - middleOf(b));
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** The findings of the doctor about one master. */
export interface Examination {
  /** The primaries of a cluster, which are examined in its place; absent for a server. */
  readonly cluster?: ClusterExamination;
  /** Present for a primary of a cluster. */
  readonly shard?: ShardFacts;
  /** Address, without credentials. */
  readonly master: string;
  /** Why the master could not be examined; `undefined` if it was. */
  readonly unreachable: Failure | undefined;
  readonly report: ServerIdentity | undefined;
  /** Whether the applications declare that it is durable. */
  readonly isDurable?: boolean;
  /** Why it must not vote; `undefined` if it may. */
  readonly fault: string | undefined;
  readonly persistence: Persistence | undefined;
  readonly missing: readonly MissingPermission[];
  /** Why it refuses to store a lock, for a reason other than a missing permission. */
  readonly refusal: Failure | undefined;
  readonly clock: ClockOffset | undefined;
  /** Milliseconds of the fastest and of the median round trip. */
  readonly latency: { readonly fastest: number; readonly median: number } | undefined;
}

/** How a server persists its data. Fields that it does not report are `undefined`. */
export interface Persistence {
  readonly appendOnly: boolean;
  /** Whether its append-only file is being written anew. */
  readonly isRewriting?: boolean;
  /** `always`, `everysec` or `no`. */
  readonly fsync: string | undefined;
  readonly snapshots: boolean | undefined;
  /** Whether the last snapshot or write to its log failed. */
  readonly failing: boolean;
}

const ROUND_TRIPS = 9;
/** Expiry of the key that is written as a trial, in milliseconds. */
const TRIAL_LIFE = 1_000;

/** Examines one master over a new connection. */
export async function examine(contact: Contact, settings: Settings): Promise<Examination> {
  try {
    const unreachable = await contact.open();
    return unreachable ? nothingKnown(contact.name, unreachable) : await examineServer(contact, settings);
  } finally {
    contact.close();
  }
}

/** What differs on a node of a cluster. */
interface NodeRules {
  /** The name as it is stored there. */
  readonly stored: (name: string) => string;
  readonly faultOf: (report: ServerIdentity) => string | undefined;
  /** The subcommands of CLUSTER that locks need. */
  readonly subcommands: readonly string[];
  /** Looks at the data of a node that has reported its identity. */
  readonly reported: (report: ServerIdentity) => Promise<void>;
}

/** Examines a server, or a node of a cluster, over an open connection, which only listens afterwards. */
async function examineServer(contact: Contact, settings: Settings, rules?: NodeRules): Promise<Examination> {
  const { stored = (name: string) => name } = rules ?? {};
  // One step after the other, so that the round trips are not measured while the server executes other commands.
  const trips = await measure(contact);
  const report = await askReport(contact, rules ? [] : [new Keyspace(settings.keyPrefix).marker]);
  const fault = report && (rules ?? { faultOf }).faultOf(report);
  if (report && fault === undefined) await rules?.reported(report);
  const persistence = await askPersistence(contact);
  const unused = new SystemRandom().token();
  // A server that must not vote may have good reasons to refuse writes.
  const refusal =
    fault === undefined ? await tryLock(contact, stored(new Keyspace(settings.keyPrefix).trialOf(unused))) : undefined;
  // Last, because the connection can only listen after it.
  const missing = await missingPermissions(contact, settings, { unused, stored, subcommands: rules?.subcommands });
  return { ...nothingKnown(contact.name), ...trips, report, fault, persistence, refusal, missing };
}

export function nothingKnown(master: string, unreachable?: Failure): Examination {
  const unknown = { report: undefined, fault: undefined, persistence: undefined, refusal: undefined };
  return { master, unreachable, ...unknown, missing: [], clock: undefined, latency: undefined };
}

async function measure(contact: Contact): Promise<Pick<Examination, 'clock' | 'latency'>> {
  const samples: ClockSample[] = [];
  const trips: number[] = [];
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [sent, began] = [Date.now(), performance.now()];
    const outcome = await contact.call('TIME');
    trips.push(performance.now() - began);
    if (isFailure(outcome)) continue;
    const [seconds, microseconds] = (outcome.value as unknown[]).map(Number);
    samples.push({ sent, received: Date.now(), time: (seconds ?? NaN) * 1_000 + (microseconds ?? NaN) / 1_000 });
  }
  trips.sort((a, b) => a - b);
  const [fastest = NaN, median = NaN] = [trips[0], trips[Math.floor(trips.length / 2)]];
  return { clock: offsetOf(samples), latency: { fastest, median } };
}

async function askReport(contact: Contact, marker: readonly string[]): Promise<ServerIdentity | undefined> {
  const outcome = await contact.call('EVAL', REPORT, marker.length, ...marker);
  if (!isFailure(outcome)) return parseServerIdentity(outcome.value);
  // A user without the permission for scripts may still have the one for INFO.
  const info = await contact.call('INFO');
  return isFailure(info) ? undefined : parseInfo(String(info.value), Date.now());
}

async function askPersistence(contact: Contact): Promise<Persistence | undefined> {
  const info = await contact.call('INFO', 'persistence');
  if (isFailure(info)) return undefined;
  const text = String(info.value);
  const failing = /^(?:rdb_last_bgsave_status|aof_last_write_status|aof_last_bgrewrite_status):err/m.test(text);
  const snapshots = await configured(contact, 'save');
  return {
    appendOnly: /^aof_enabled:1/m.test(text),
    isRewriting: /^aof_rewrite_(?:in_progress|scheduled):1/m.test(text),
    fsync: await configured(contact, 'appendfsync'),
    snapshots: snapshots === undefined ? undefined : snapshots !== '',
    failing,
  };
}

/** A setting of the server; `undefined` if the server does not report it. Locks do not need the permission for this. */
async function configured(contact: Contact, name: string): Promise<string | undefined> {
  const outcome = await contact.call('CONFIG', 'GET', name);
  const [, value] = isFailure(outcome) || !Array.isArray(outcome.value) ? [] : (outcome.value as unknown[]);
  return typeof value === 'string' ? value : undefined;
}

/** Writes an unused key and deletes it: a server may refuse writes for many reasons. */
async function tryLock(contact: Contact, name: string): Promise<Failure | undefined> {
  const outcome = await contact.call('SET', name, 'doctor', 'PX', TRIAL_LIFE, 'NX');
  if (!isFailure(outcome)) await contact.call('DEL', name);
  return isFailure(outcome) && outcome.code !== 'NOPERM' && !/^unknown command/i.test(outcome.reason)
    ? outcome
    : undefined;
}

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
interface ShardStanding {
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
