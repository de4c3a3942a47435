import {
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
import type { ServerOperator } from '../redis-state.js';
import { ClusterNames } from './cluster-names.js';
import { ClusterOperator } from './cluster-operator.js';
import { Topology } from './topology.js';
import { nameOf } from '../urls.js';
import type { Clock, Instant, Timer } from '../../core/clock.js';
import type { KnownPrimary } from './cluster-map.js';
import { PartitionGuard } from './partition-guard.js';
import { PartitionCalls, SILENT, Turn } from './partition-calls.js';
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
  // By partition or, where partitions share commands, by owner.
  private readonly queues = new Map<number | string, RequestQueue>();
  private listener: (() => void) | undefined;
  private listening: { readonly waiter: string; readonly listener: NotificationListener } | undefined;
  private isOpened = false;
  private isLost = false;
  private isReported = false;
  private voting = 0;
  private readonly warnings = new Set<string>();
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
    context.clusters?.add(topology.ids);
    this.calls = new PartitionCalls({
      ...{ clock, names, topology, guard: this.guard, masterTimeout: settings.masterTimeout },
      needsView: nodeTimeout === undefined,
      readsSeals: guard !== undefined || context.readsMarkers === true,
    });
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
      this.topology.ownerOf(partition)?.refusal.note(request, answer);
      reply(answer);
      queue.noteAnswer();
    };
    const pending: PartitionedRequest = { partition, request, reply: answered };
    queue.add(pending);
  }

  private queueFor(partition: number, { op }: MasterRequest): RequestQueue {
    const isTogether = this.cluster.batchesPartitions && op !== 'probe' && !op.endsWith('-state');
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
    const { topology } = this;
    const [node] = topology.primaries;
    const fault = node ? undefined : topology.all.find((one) => one.fault)?.fault;
    return {
      run: this.context.clusters?.idOf(topology.ids) ?? [...topology.ids][0],
      data: undefined,
      generation: this.guard && String(this.guard.changes),
      version: node?.identity?.version,
      fault,
      quarantine: this.quarantine,
    };
  }

  shards(): readonly ShardStatus[] {
    const now = this.clock.read();
    return [...this.topology.map.primaries.values()]
      .map((primary) => this.shardOf(primary, now))
      .sort((one, other) => (one.address < other.address ? -1 : 1));
  }

  private shardOf(primary: KnownPrimary, now: Instant): ShardStatus {
    const { topology, guard } = this;
    const { announced, address, node } = topology.reach(primary);
    const served = topology.map.partitionsOf(primary.owner);
    const shard = { address: nameOf(address ?? announced), partitions: served.length };
    if (!node) return { ...shard, state: 'down', reason: topology.fault ?? 'not connected yet' };
    const problem = node.problem('');
    if (problem) return { ...shard, state: 'down', reason: problem.reason };
    if (node.isSilent || node.questions >= MAX_QUESTIONS) return { ...shard, state: 'down', reason: SILENT };
    const refusal = node.refusal.reason;
    if (refusal !== undefined) return { ...shard, state: 'refused', reason: refusal };
    const waits = guard?.quarantinesAt(now, served) ?? [];
    const longest = waits.at(-1);
    if (!longest) return { ...shard, state: 'voting' };
    const share = waits.length === served.length ? '' : `${waits.length} of its ${served.length} partitions: `;
    return { ...shard, state: 'quarantined', reason: `${share}${longest.reason}`, remaining: longest.remaining };
  }

  // One of the primaries may be out of memory while the others grant locks.
  get refusalReason(): string | undefined {
    const { topology } = this;
    const reasons = [...topology.map.primaries.keys()].map((owner) => topology.nodeOf(owner)?.refusal.reason);
    return reasons.includes(undefined) ? undefined : reasons[0];
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
        this.cluster.nodeTimeout !== undefined &&
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
