import { Keyspace } from '../core/keyspace.js';
import { SystemRandom } from '../runtime/system.js';
import type { Settings } from '../core/settings/settings.js';
import { faultOf, parseInfo, parseServerIdentity, type ServerIdentity } from '../redis/replies.js';
import { REPORT } from '../redis/scripts/lua.generated.js';
import { Contact, type ContactFailure, isFailure } from './contact.js';
import { type MissingPermission, missingPermissions } from './permissions.js';
import { ClusterNames } from '../redis/cluster/cluster-names.js';
import { faultOfNode } from '../redis/cluster/cluster-node.js';
import type { NamedClient } from '../redis/master-source.js';
import type { ClusterSettings } from '../redis/cluster/cluster-source.js';
import { type KnownPrimary, parseNodes, type NodeView, SLOTS, viewFromSlots } from '../redis/cluster/cluster-map.js';
import { reasonForSeal, SEAL_FIELDS, sealFrom } from '../redis/cluster/partition-guard.js';
import { nameOf, type NodeAddress } from '../redis/urls.js';

// How far a server's clock is ahead of the local clock, in milliseconds.
interface ClockOffset {
  readonly min: number;
  readonly max: number;
}

// `time` was read at some moment between the two readings of the local clock.
interface ClockSample {
  readonly sent: number;
  readonly received: number;
  readonly time: number;
}

// Clocks are read in whole milliseconds.
const RESOLUTION = 1;

export function offsetOf(samples: readonly ClockSample[]): ClockOffset | undefined {
  if (samples.length === 0) return undefined;
  const min = Math.max(...samples.map(({ received, time }) => time - received)) - RESOLUTION;
  const max = Math.min(...samples.map(({ sent, time }) => time - sent)) + RESOLUTION;
  // The bounds cross if a clock was set meanwhile.
  return min <= max ? { min, max } : { min: max, max: min };
}

// For a cluster, its primaries are examined in its place (`cluster`), each with `shard`.
export interface Examination {
  readonly cluster?: ClusterExamination;
  readonly shard?: ShardFacts;
  // An address, without credentials.
  readonly master: string;
  readonly unreachable: ContactFailure | undefined;
  readonly report: ServerIdentity | undefined;
  // The applications declare it.
  readonly isDurable?: boolean;
  // Why it must not vote.
  readonly fault: string | undefined;
  readonly persistence: Persistence | undefined;
  readonly missing: readonly MissingPermission[];
  // For another reason than a missing permission.
  readonly refusal: ContactFailure | undefined;
  readonly clock: ClockOffset | undefined;
  // In milliseconds.
  readonly latency: { readonly fastest: number; readonly median: number } | undefined;
}

// Fields that the server does not report are `undefined`.
interface Persistence {
  readonly appendOnly: boolean;
  readonly isRewriting?: boolean;
  // `always`, `everysec` or `no`.
  readonly fsync: string | undefined;
  readonly snapshots: boolean | undefined;
  readonly failing: boolean;
}

const ROUND_TRIPS = 9;
// In milliseconds.
const TRIAL_LIFE = 1_000;

export function examine(
  endpoint: NamedClient | ClusterSettings,
  settings: Settings,
  timeout: number,
): Promise<Examination> {
  if ('seeds' in endpoint) return examineCluster(endpoint, settings, timeout);
  const contact = new Contact(endpoint, timeout);
  return contact.use(
    () => examineServer(contact, settings),
    (failure) => nothingKnown(contact.name, failure),
  );
}

interface NodeRules {
  readonly stored: (name: string) => string;
  readonly faultOf: (report: ServerIdentity) => string | undefined;
  readonly subcommands: readonly string[];
  readonly reported: (report: ServerIdentity) => Promise<void>;
}

// Afterwards the connection can only listen.
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

function nothingKnown(master: string, unreachable?: ContactFailure): Examination {
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
  return isFailure(outcome) ? askInfo(contact) : parseServerIdentity(outcome.value);
}

// For a user without the permission for scripts, and for a node of a cluster that may refuse the marker's key.
export async function askInfo(contact: Contact): Promise<ServerIdentity | undefined> {
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

// Locks do not need the permission for this, so a server may not report it.
async function configured(contact: Contact, name: string): Promise<string | undefined> {
  const outcome = await contact.call('CONFIG', 'GET', name);
  const [, value] = isFailure(outcome) || !Array.isArray(outcome.value) ? [] : (outcome.value as unknown[]);
  return typeof value === 'string' ? value : undefined;
}

// By a write to an unused key: a server may refuse writes for many reasons.
async function tryLock(contact: Contact, name: string): Promise<ContactFailure | undefined> {
  const outcome = await contact.call('SET', name, 'doctor', 'PX', TRIAL_LIFE, 'NX');
  if (!isFailure(outcome)) await contact.call('DEL', name);
  return isFailure(outcome) && outcome.code !== 'NOPERM' && !/^unknown command/i.test(outcome.reason)
    ? outcome
    : undefined;
}

interface ClusterExamination {
  // Of all nodes: clusters with a common one are one cluster.
  readonly ids: readonly string[];
  readonly shards: readonly Examination[];
  // Slots without a primary.
  readonly unserved: number;
  // Replicas that this process cannot reach.
  readonly unreachable: readonly { readonly address: string; readonly failure: ContactFailure }[];
  // In milliseconds: `clusterNodeTimeout`, if it was given.
  readonly nodeTimeout: number | undefined;
}

interface ShardFacts {
  readonly partitions: number;
  readonly replicas: number;
  // Its `cluster_state`.
  readonly state: string | undefined;
  // In milliseconds: its `cluster-node-timeout`.
  readonly nodeTimeout: number | undefined;
  // `undefined` if its seals could not be read.
  readonly standing: ShardStanding | undefined;
}

interface ShardStanding {
  readonly isMet: boolean;
  // Milliseconds until all of its partitions vote; `undefined` if a process has to connect to it first.
  readonly wait: number | undefined;
  readonly reason: string;
}

async function examineCluster(cluster: ClusterSettings, settings: Settings, timeout: number): Promise<Examination> {
  const nodes = await findNodes(cluster, timeout);
  if ('code' in nodes) return nothingKnown(cluster.name, nodes);
  const { ids, primaries, replicas } = nodes;
  const { nodeTimeout } = cluster;
  const subcommands = nodeTimeout === undefined ? ['NODES', 'MYID', 'INFO'] : ['SLOTS', 'MYID'];
  const shards = await Promise.all(primaries.map((one) => examineShard(one, { nodes, settings, subcommands })));
  const tried = await Promise.all(replicas.map((replica) => tryReplica(replica, nodes)));
  const served = primaries.flatMap(({ ranges }) => ranges).map(([first, last]) => last - first + 1);
  return {
    ...nothingKnown(cluster.name),
    cluster: {
      ids,
      shards: shards.sort((one, other) => (one.master < other.master ? -1 : 1)),
      unserved: SLOTS - served.reduce((sum, count) => sum + count, 0),
      unreachable: tried.flatMap((one) => one ?? []),
      nodeTimeout,
    },
  };
}

// What the newest view of a cluster says.
interface ClusterNodes extends NodeView {
  readonly contactAt: (announced: NodeAddress) => Contact | ContactFailure;
}

async function findNodes(cluster: ClusterSettings, timeout: number): Promise<ClusterNodes | ContactFailure> {
  const answers = await Promise.all(cluster.seeds.map((seed) => askNode(cluster, seed, timeout)));
  const known = answers.flatMap((answer) => ('code' in answer ? [] : [answer]));
  const [newest] = known.sort((one, other) => newestEpoch(other) - newestEpoch(one));
  if (newest) return newest;
  const failures = answers.flatMap((answer) => ('code' in answer ? [answer] : []));
  // Waiting can help as long as it can help one of the nodes.
  return failures.find(({ isPermanent }) => !isPermanent) ?? failures[0] ?? NO_NODE;
}

const NO_NODE: ContactFailure = Object.freeze({ code: 'UNREACHABLE', reason: 'it has no nodes' });

function askNode(cluster: ClusterSettings, seed: NodeAddress, timeout: number): Promise<ClusterNodes | ContactFailure> {
  const contact = contactTo(cluster, seed, timeout);
  const named = (failure: ContactFailure): ContactFailure => ({
    ...failure,
    reason: `${contact.name}: ${failure.reason}`,
  });
  return contact.use<ClusterNodes | ContactFailure>(async () => {
    const asksSlots = cluster.nodeTimeout !== undefined;
    const outcome = await contact.call('CLUSTER', asksSlots ? 'SLOTS' : 'NODES');
    if (isFailure(outcome)) return named(outcome);
    const view = asksSlots ? viewFromSlots(outcome.value) : parseNodes(String(outcome.value));
    if (view.primaries.length === 0) return named({ code: 'UNREACHABLE', reason: 'it knows no primary' });
    return {
      ...view,
      contactAt({ host, port }) {
        try {
          // A node that announces no host is reached by that of the node that was asked.
          return contactTo(cluster, cluster.translate({ host: host === '' ? seed.host : host, port }), timeout);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          return { code: 'UNREACHABLE', reason, isPermanent: true };
        }
      },
    };
  }, named);
}

function contactTo(cluster: ClusterSettings, address: NodeAddress, timeout: number): Contact {
  return new Contact({ name: nameOf(address), client: cluster.clientFor(address) }, timeout);
}

function newestEpoch({ primaries }: NodeView): number {
  return Math.max(0, ...primaries.map(({ epoch }) => epoch));
}

interface Surroundings {
  readonly nodes: ClusterNodes;
  readonly settings: Settings;
  readonly subcommands: readonly string[];
}

async function examineShard(primary: KnownPrimary, surroundings: Surroundings): Promise<Examination> {
  const { nodes, settings, subcommands } = surroundings;
  const served = nodes.claims.flatMap((claim, partition) => (claim?.owner === primary.owner ? [partition] : []));
  const replicas = nodes.replicas.filter((replica) => replica.primary === primary.owner).length;
  const shard: ShardFacts = {
    ...{ partitions: served.length, replicas, state: undefined, nodeTimeout: undefined, standing: undefined },
  };
  const contact = nodes.contactAt(primary);
  if ('code' in contact) return { ...nothingKnown(nameOf(primary), contact), shard };
  return contact.use<Examination>(
    async () => {
      const names = new ClusterNames(settings.keyPrefix);
      const [partition = 0] = served;
      const facts = await factsOn(contact);
      let standing: ShardStanding | undefined;
      const examined = await examineServer(contact, settings, {
        ...{ stored: (name) => names.inPartition(partition, name), faultOf: faultOfNode, subcommands },
        reported: async (report) => {
          standing = await standingOn(contact, { names, served, primary, report });
        },
      });
      return { ...examined, shard: { ...shard, ...facts, standing } };
    },
    (failure) => ({ ...nothingKnown(contact.name, failure), shard }),
  );
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

// Judges as a process would that connects to the primary now.
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

async function tryReplica(
  replica: NodeAddress,
  nodes: ClusterNodes,
): Promise<{ readonly address: string; readonly failure: ContactFailure } | undefined> {
  const contact = nodes.contactAt(replica);
  if ('code' in contact) return { address: nameOf(replica), failure: contact };
  return contact.use(
    () => Promise.resolve(undefined),
    (failure) => ({ address: contact.name, failure }),
  );
}
