import {
  type KeyValue,
  type Master,
  type MasterIdentity,
  type MasterReply,
  type MasterRequest,
  type NotificationListener,
  type Quarantine,
  type ReplyCallback,
  type ShardStatus,
  type UnreachableReply,
} from '../../core/master.interface.js';
import { RedisOperator, type Scan, type ServerOperator } from '../redis-state.js';
import { ClusterNames } from './cluster-names.js';
import { Topology } from './topology.js';
import { nameOf } from '../urls.js';
import type { Clock, Instant, Timer } from '../../core/clock.js';
import type { KnownPrimary } from './cluster-map.js';
import { PartitionGuard } from './partition-guard.js';
import { noOwnerOf, PartitionCalls, PrimaryRefusals, SILENT, Turn } from './partition-calls.js';
import { MAX_QUESTIONS } from './views.js';
import { RedlockConfigError } from '../../core/errors.js';
import { patienceOf } from '../guard/guard-group.js';
import { placeholderClusterUrlOf } from '../doctor-command.js';
import type { RedisMasterContext } from '../redis-client.interface.js';
import { isVote } from '../request-encoding.js';
import { RequestQueue } from '../request-queue.js';
import type { ClusterNode } from './cluster-node.js';
import type { ClusterSettings } from './cluster-source.js';
import { type PartitionedRequest, type PartitionRequest, split, SplitRequest } from './split-request.js';

class ClusterOperator implements ServerOperator {
  constructor(
    private readonly names: ClusterNames,
    private readonly topology: Topology,
    private readonly problem: () => MasterReply | undefined,
  ) {}

  read(key: string): Promise<KeyValue | MasterReply | null> {
    return this.at(key).read(key);
  }

  async values(keys: readonly string[]): Promise<readonly (string | null)[] | MasterReply> {
    const found = await Promise.all(keys.map((key) => this.at(key).values([key])));
    const failure = found.find((one): one is MasterReply => 'kind' in one);
    return failure ?? found.flatMap((one) => ('kind' in one ? [] : one));
  }

  revoke(key: string, value: string): Promise<number | MasterReply> {
    return this.at(key).revoke(key, value);
  }

  async scan({ match, take, ...scan }: Scan): Promise<MasterReply | undefined> {
    const { names, topology } = this;
    const ends = [...topology.map.primaries.values()].map((primary) =>
      this.on(primary).scan({
        ...{ ...scan, match: names.patternOf(match) },
        take: (found) => take(found.flatMap((stored) => names.nameOf(stored) ?? [])),
      }),
    );
    return (await Promise.all(ends)).find((end) => end !== undefined);
  }

  private at(key: string): RedisOperator {
    const { names, topology } = this;
    const partition = names.partitionOf(key);
    const problem = this.problem();
    const primary = problem ? undefined : topology.map.primaries.get(topology.map.claimOf(partition)?.owner ?? '');
    if (!primary) return operatorOn(undefined, problem ?? noOwnerOf(partition));
    return this.on(primary, (name) => names.inPartition(partition, name));
  }

  private on(primary: KnownPrimary, stored?: (name: string) => string): RedisOperator {
    const { announced, address, node } = this.topology.reach(primary);
    const reason = `${nameOf(address ?? announced)}: ${this.topology.fault ?? 'not connected yet'}`;
    return operatorOn(node, { kind: 'unreachable', reason, sent: false }, stored);
  }
}

function operatorOn(
  node: ClusterNode | undefined,
  missing: MasterReply,
  stored?: (name: string) => string,
): RedisOperator {
  return new RedisOperator({
    ...{ stored, problem: () => (node ? node.problem() : missing) },
    call: (command, args) => (node ? node.call(command, args) : Promise.resolve()),
    failure: (error, tokens) => node?.failure(error, tokens) ?? missing,
  });
}

interface KnownCluster {
  readonly topology: Topology;
  readonly guard: PartitionGuard | undefined;
  readonly refusals: PrimaryRefusals;
}

function shardsOf(cluster: KnownCluster, now: Instant): readonly ShardStatus[] {
  return [...cluster.topology.map.primaries.values()]
    .map((primary) => shardOf(primary, cluster, now))
    .sort((one, other) => (one.address < other.address ? -1 : 1));
}

function shardOf(primary: KnownPrimary, { topology, guard, refusals }: KnownCluster, now: Instant): ShardStatus {
  const { announced, address, node } = topology.reach(primary);
  const served = topology.map.partitionsOf(primary.owner);
  const shard = { address: nameOf(address ?? announced), partitions: served.length };
  if (!node) return { ...shard, state: 'down', reason: topology.fault ?? 'not connected yet' };
  const problem = node.problem('');
  if (problem) return { ...shard, state: 'down', reason: problem.reason };
  if (node.isSilent || node.questions >= MAX_QUESTIONS) return { ...shard, state: 'down', reason: SILENT };
  const refusal = refusals.reasonOf(primary.owner);
  if (refusal !== undefined) return { ...shard, state: 'refused', reason: refusal };
  const waits = guard?.quarantinesAt(now, served) ?? [];
  const longest = waits.at(-1);
  if (!longest) return { ...shard, state: 'voting' };
  const share = waits.length === served.length ? '' : `${waits.length} of its ${served.length} partitions: `;
  return { ...shard, state: 'quarantined', reason: `${share}${longest.reason}`, remaining: longest.remaining };
}

const NO_PRIMARY: MasterReply = Object.freeze({
  ...{ kind: 'unreachable', reason: 'no primary is known', sent: false },
} as const);

// A cluster is one master. Its vote for a key comes from the primary that serves the partition of the key. Replicas are
// never asked.
// @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
export class ClusterMaster implements Master {
  readonly name: string;
  private readonly clock: Clock;
  private readonly names: ClusterNames;
  private readonly topology: Topology;
  private readonly guard: PartitionGuard | undefined;
  private readonly calls: PartitionCalls;
  private readonly turn: Turn;
  private readonly refusals = new PrimaryRefusals();
  // By partition or, where partitions share commands, by owner.
  private readonly queues = new Map<number | string, RequestQueue>();
  private readonly batchesPartitions: boolean;
  private listener: (() => void) | undefined;
  private listening: { readonly waiter: string; readonly listener: NotificationListener } | undefined;
  private isOpened = false;
  private isLost = false;
  private isReported = false;
  private voting = 0;
  private readonly warnings = new Set<string>();
  // The owners of partitions are known by `clusterNodeTimeout` alone.
  private readonly isTimed: boolean;
  private nextVote: Timer | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly cluster: ClusterSettings,
    private readonly context: RedisMasterContext,
  ) {
    const { clock, settings, guard, random } = context;
    if (/[{}]/.test(settings.keyPrefix)) {
      throw new RedlockConfigError(
        'keyPrefix',
        settings.keyPrefix,
        'must contain no brace: on a cluster, a tag follows it',
      );
    }
    this.name = cluster.name;
    this.batchesPartitions = cluster.batchesPartitions;
    this.clock = clock;
    this.turn = new Turn(clock);
    this.names = new ClusterNames(settings.keyPrefix);
    const patience = patienceOf(settings);
    const topology: Topology = new Topology({
      ...context,
      ...{ cluster, patience },
      ready: (node, isLate) => this.welcome(node, isLate),
      lost: () => this.noteLoss(),
      moved: (partitions) => this.noteMoved(partitions),
      asked: async () => {
        await this.guard?.check();
        this.noteVotes();
      },
      isSettled: () => this.isSettled,
    });
    this.topology = topology;
    const { names } = this;
    const { nodeTimeout } = cluster;
    this.isTimed = nodeTimeout !== undefined;
    this.guard =
      guard &&
      new PartitionGuard({
        ...{ clock, random, settings, names, map: topology.map, nodeTimeout, patience },
        nodes: () => topology.primaries,
      });
    guard?.addCluster({
      votes: () => !this.isQuarantined,
      isNew: () => this.guard?.isNewAt(this.clock.read()) ?? false,
    });
    context.clusters?.add(this);
    this.calls = new PartitionCalls({
      ...{ clock, names, topology, guard: this.guard, masterTimeout: settings.masterTimeout },
      needsView: !this.isTimed,
      readsSeals: guard !== undefined || context.readsMarkers === true,
    });
  }

  get ids(): ReadonlySet<string> {
    return this.topology.ids;
  }

  get placeholderUrl(): string {
    return placeholderClusterUrlOf(this.cluster);
  }

  ask(request: MasterRequest, reply: ReplyCallback): void {
    const problem = this.problem();
    if (problem) {
      reply(problem);
      return;
    }
    const parts = this.partsOf(request);
    const [only] = parts;
    if (only && parts.length === 1) {
      this.askPartition(only, reply);
      return;
    }
    if (!only) {
      reply(NO_PRIMARY);
      return;
    }
    const send = (part: PartitionRequest, answer: ReplyCallback): void => this.askPartition(part, answer);
    const isRetry = request.op === 'acquire' && request.queue !== undefined;
    new SplitRequest(request, parts, this.names, send, reply).run(isRetry);
  }

  private partsOf(request: MasterRequest): readonly PartitionRequest[] {
    // Each primary has to show that it can write.
    if (request.op === 'probe') {
      return this.topology.primaries.flatMap(({ id }) => {
        const [partition] = this.topology.map.partitionsOf(id);
        return partition === undefined
          ? []
          : [{ partition, request: { op: 'probe', keys: [this.names.probeOf(partition)] } as const }];
      });
    }
    return split(
      request,
      this.names,
      (partition, waiter) => this.topology.ownerOf(partition)?.channelOf(waiter) ?? waiter,
    );
  }

  private askPartition({ partition, request }: PartitionRequest, reply: ReplyCallback): void {
    // What would be a new lock is not even sent to a partition that does not vote: it could be granted there later.
    const record = isVote(request) ? this.guard?.records[partition] : undefined;
    const quarantine = record?.quarantineAt(this.clock.read());
    if (quarantine && (request.op !== 'extend' || !record?.seal)) {
      reply({ kind: 'quarantined', sent: false, ...quarantine });
      if (!record?.seal && !this.guard?.isForbidden) this.topology.refreshSoon();
      return;
    }
    const queue = this.queueFor(partition, request);
    const answered = (answer: MasterReply): void => {
      if (answer.kind === 'refused' || !this.refusals.isEmpty) {
        this.refusals.note(this.topology.map.claimOf(partition)?.owner ?? '', request, answer);
      }
      reply(answer);
      queue.noteAnswer();
    };
    const pending: PartitionedRequest = { partition, request, reply: answered };
    queue.add(pending);
  }

  private queueFor(partition: number, { op }: MasterRequest): RequestQueue {
    const isTogether = this.batchesPartitions && op !== 'probe' && !op.endsWith('-state');
    const name = isTogether ? (this.topology.map.claimOf(partition)?.owner ?? '') : partition;
    const known = this.queues.get(name);
    if (known) return known;
    const queue = new RequestQueue({
      clock: this.turn,
      isAlone: this.context.isAlone ?? false,
      send: (asked) =>
        isTogether
          ? this.calls.sendTogether(asked as readonly PartitionedRequest[])
          : this.calls.send(partition, asked),
    });
    this.queues.set(name, queue);
    return queue;
  }

  identity(): MasterIdentity {
    const [node] = this.topology.primaries;
    const fault = this.topology.primaries.length > 0 ? undefined : this.topology.all.find((one) => one.fault)?.fault;
    return {
      run: this.context.clusters?.idOf(this) ?? [...this.ids][0],
      data: undefined,
      generation: this.guard && String(this.guard.changes),
      version: node?.identity?.version,
      fault,
      quarantine: this.quarantine,
    };
  }

  shards(): readonly ShardStatus[] {
    const { topology, guard, refusals, clock } = this;
    return shardsOf({ topology, guard, refusals }, clock.read());
  }

  get refusalReason(): string | undefined {
    const { refusals, topology } = this;
    return refusals.isEmpty ? undefined : refusals.commonReason(topology.map.primaries.keys());
  }

  // Of the whole cluster: while any partition votes, there is none.
  private get quarantine(): Quarantine | undefined {
    return this.isQuarantined ? this.guard?.quarantinesAt(this.clock.read())[0] : undefined;
  }

  get isSilent(): boolean {
    return this.topology.primaries.every((node) => node.isSilent);
  }

  get isQuarantined(): boolean {
    return this.guard !== undefined && !this.guard.votesAnywhere(this.clock.read());
  }

  async connect(): Promise<void> {
    await this.topology.open();
    this.isOpened = true;
    this.noteVotes();
  }

  problem(): UnreachableReply | undefined {
    if (this.closing) return { kind: 'unreachable', reason: 'closed', sent: false };
    const { fault: foreign } = this.topology.map;
    if (foreign !== undefined) return { kind: 'unreachable', reason: foreign, sent: false, isPermanent: true };
    if (this.topology.hasPrimary) return undefined;
    const problems = this.topology.all.flatMap((node) => node.problem() ?? []);
    // Waiting can help as long as it can help one of the nodes.
    const hopeful = problems.find(({ isPermanent }) => !isPermanent) ?? problems[0];
    if (hopeful) return hopeful;
    const { fault } = this.topology;
    if (fault !== undefined) return { kind: 'unreachable', reason: fault, sent: false, isPermanent: true };
    const reason = this.isOpened ? 'most of its primaries do not answer' : 'not connected yet';
    return { kind: 'unreachable', reason, sent: false };
  }

  reconnect(): void {
    for (const node of this.topology.all) if (!node.isConnected || node.questions > 0) node.reconnect();
    this.topology.refreshSoon();
  }

  noteStandstill(): void {
    this.topology.views.noteStandstill();
    for (const record of this.guard?.records ?? []) record.noteStandstill(this.clock.read().monotonic);
  }

  onReady(listener: () => void): void {
    this.listener = listener;
  }

  listen(waiter: string, listener: NotificationListener | undefined): void {
    if (listener && !this.closing) {
      this.listening ??= {
        waiter,
        listener: (stored) => listener(stored === undefined ? undefined : this.names.withoutTag(stored)),
      };
    } else {
      this.listening = undefined;
    }
    for (const node of this.topology.all) node.listen(waiter, this.listening?.listener);
  }

  get operator(): ServerOperator {
    return new ClusterOperator(this.names, this.topology, () => this.problem());
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.nextVote?.cancel();
    await Promise.all([...this.queues.values()].map((queue) => queue.drain()));
    await this.topology.close();
  }

  private welcome(node: ClusterNode, isLate: boolean): void {
    this.guard?.forget(node);
    if (this.listening) node.listen(this.listening.waiter, this.listening.listener);
    if (isLate && this.isLost) this.context.observer.masterFound?.(this.name);
    this.isLost = false;
    this.warnOf(node);
    this.listener?.();
  }

  private warnOf({ identity }: ClusterNode): void {
    const { guard, context } = this;
    const risks = [
      identity?.eviction && `maxmemory-policy ${identity.eviction} drops locks when memory is full: use noeviction`,
      guard &&
        this.isTimed &&
        'with clusterNodeTimeout, a primary that was paused and replaced may grant what another holder has',
    ];
    for (const risk of risks) {
      if (!risk || this.warnings.has(risk)) continue;
      this.warnings.add(risk);
      context.observer.masterAtRisk?.(this.name, risk);
    }
  }

  private noteLoss(): void {
    const problem = this.problem();
    if (!problem || this.closing || this.isLost) return;
    this.isLost = true;
    const { observer } = this.context;
    if (problem.isPermanent) observer.masterRefused?.(this.name, problem.reason);
    else if (this.isOpened) observer.masterLost?.(this.name, problem.reason);
  }

  private noteMoved(partitions: readonly number[]): void {
    for (const partition of partitions) this.guard?.invalidate(partition);
    // What was published while an owner changed was missed.
    if (this.isOpened) this.listening?.listener(undefined);
  }

  private noteVotes(): void {
    const { guard, clock, context } = this;
    if (!guard || this.problem()) return;
    const now = clock.read();
    const waits = guard.quarantinesAt(now);
    const voting = guard.records.length - waits.length;
    if (waits.length > 0 && !this.isReported && this.isOpened) {
      const longest = waits.at(-1);
      const share = `${waits.length} of ${guard.records.length} partitions: ${longest?.reason ?? ''}`;
      context.observer.masterQuarantined?.(this.name, share, longest?.remaining ?? guard.longest);
      this.isReported = true;
    } else if (waits.length === 0 && this.isReported) {
      context.observer.masterVotesAgain?.(this.name);
      this.isReported = false;
    }
    if (voting > this.voting) this.listener?.();
    this.voting = voting;
    this.nextVote?.cancel();
    const ends = guard.records.flatMap((record) => (record.seal ? (record.quarantineAt(now)?.remaining ?? []) : []));
    if (ends.length === 0) return;
    this.nextVote = clock.schedule(Math.ceil(Math.min(...ends)), () => this.noteVotes()).unref();
  }

  // Without the permission that is missing, asking again would not help.
  private get isSettled(): boolean {
    const { map, primaries } = this.topology;
    const isConnected = map.primaries.size > 0 && primaries.length >= map.primaries.size;
    return isConnected && (!this.guard || this.guard.isComplete || this.guard.isForbidden);
  }
}

// Protocol 12.10
export class ClusterTwins {
  private readonly clusters: ClusterMaster[] = [];

  add(cluster: ClusterMaster): void {
    this.clusters.push(cluster);
  }

  // The same for all clusters of this service that have a node in common; `undefined` while no node is known.
  idOf(cluster: ClusterMaster): string | undefined {
    const { ids } = cluster;
    const first = this.clusters.find((other) => [...other.ids].some((id) => ids.has(id)));
    const [id] = first?.ids ?? [];
    return id;
  }
}
