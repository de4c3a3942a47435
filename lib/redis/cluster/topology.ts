import type { Clock, Timer } from '../../core/clock.js';
import { ClusterMap, type KnownPrimary, type NodeView } from './cluster-map.js';
import { ClusterNode } from './cluster-node.js';
import type { ClusterSettings } from './cluster-source.js';
import { nameOf, type NodeAddress } from '../urls.js';
import type { RedisMasterContext } from '../redis-client.interface.js';
import { Views } from './views.js';

// While something is missing, the cluster is asked again after so many milliseconds: at first, and at most.
const FIRST_RETRY = 100;
const LAST_RETRY = 500;
// How often an idle process asks the cluster, in milliseconds: so it notices a failover before its next lock.
const IDLE_INTERVAL = 5_000;
// In milliseconds of silence: the peer may have vanished unnoticed.
const RECONNECT_AFTER = 5_000;

interface TopologyContext extends RedisMasterContext {
  readonly cluster: ClusterSettings;
  // Milliseconds that a node gets to answer.
  readonly patience: number;
  readonly ready: (node: ClusterNode, isLate: boolean) => void;
  readonly lost: () => void;
  readonly moved: (partitions: readonly number[]) => void;
  readonly asked: () => Promise<void>;
  readonly isSettled: () => boolean;
}

export class Topology {
  readonly map: ClusterMap;
  readonly views: Views;
  // Of all nodes that were ever named: clusters with a common one are one cluster.
  readonly ids = new Set<string>();
  private readonly clock: Clock;
  private readonly nodes = new Map<string, ClusterNode>();
  fault: string | undefined;
  private refreshing: Promise<void> | undefined;
  private timer: Timer | undefined;
  // When the timer fires. Monotonic.
  private due = Infinity;
  private retry = FIRST_RETRY;
  private isClosed = false;

  constructor(private readonly context: TopologyContext) {
    const { clock, cluster, guard, patience } = context;
    this.clock = clock;
    this.map = new ClusterMap(guard !== undefined && cluster.nodeTimeout === undefined);
    this.views = new Views({
      ...{ clock, patience },
      nodes: () => this.connected,
      learn: (views) => this.learn(views),
    });
  }

  get connected(): readonly ClusterNode[] {
    return [...this.nodes.values()].filter(({ isConnected }) => isConnected);
  }

  get all(): readonly ClusterNode[] {
    return [...this.nodes.values()];
  }

  get primaries(): readonly ClusterNode[] {
    return this.connected.filter(({ id }) => this.map.primaries.has(id));
  }

  // Each request asks for this, so no list is made.
  get hasPrimary(): boolean {
    for (const node of this.nodes.values()) if (node.isConnected && this.map.primaries.has(node.id)) return true;
    return false;
  }

  ownerOf(partition: number): ClusterNode | undefined {
    const claim = this.map.claimOf(partition);
    return claim && this.nodeOf(claim.owner);
  }

  nodeAnnouncedAs(address: string): ClusterNode | undefined {
    for (const { owner, host, port } of this.map.primaries.values()) {
      if (`${host}:${port}` === address) return this.nodeOf(owner);
    }
    return undefined;
  }

  reach({ owner, host, port }: KnownPrimary): {
    readonly announced: NodeAddress;
    readonly address: NodeAddress | undefined;
    readonly node: ClusterNode | undefined;
  } {
    const asked = this.nodeOf(owner);
    const announced = host === '' ? { host: asked?.address.host ?? this.anyHost, port } : { host, port };
    const address = asked && host === '' ? asked.address : this.translated(announced);
    return { announced, address, node: asked ?? (address && this.nodes.get(nameOf(address))) };
  }

  // Resolves when the nodes named at first were tried, and the primaries that they name.
  async open(): Promise<void> {
    await Promise.all(this.context.cluster.seeds.map((address) => this.connect(address)));
    await this.refresh();
    this.planNext();
  }

  // Connects to new primaries, and leaves nodes that have no slots any more. One round at a time.
  refresh(): Promise<void> {
    this.refreshing ??= this.ask().finally(() => (this.refreshing = undefined));
    return this.refreshing;
  }

  // Something is missing: asks soon, and again until nothing is.
  refreshSoon(): void {
    this.plan(this.retry);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.timer?.cancel();
    await Promise.all(this.all.map((node) => node.close()));
  }

  nodeOf(id: string): ClusterNode | undefined {
    let found: ClusterNode | undefined;
    for (const node of this.nodes.values()) {
      if (node.id !== id) continue;
      if (node.isConnected) return node;
      found ??= node;
    }
    return found;
  }

  private async ask(): Promise<void> {
    // A node that hangs is not asked again: without this, a connection whose peer has disappeared would stay.
    for (const node of this.connected) if (node.silence > RECONNECT_AFTER) node.reconnect();
    await this.views.ask();
    // New primaries take part in the next round.
    if (await this.follow()) await this.views.ask();
    await this.context.asked();
  }

  private learn(views: readonly NodeView[]): ReadonlySet<number> {
    for (const { ids } of views) for (const id of ids) this.ids.add(id);
    const { confirmed, changed } = this.map.learn(views);
    this.views.forget(changed);
    if (changed.length > 0) this.context.moved(changed);
    return confirmed;
  }

  private async follow(): Promise<boolean> {
    if (this.isClosed) return false;
    const { cluster } = this.context;
    const primaries = [...this.map.primaries.values(), ...this.map.candidates];
    const wanted = new Map<string, NodeAddress>();
    for (const primary of primaries) {
      const { address } = this.reach(primary);
      if (address) wanted.set(nameOf(address), address);
    }
    const hasPrimary = [...wanted.keys()].some((name) => this.nodes.get(name)?.isConnected);
    if (!hasPrimary) for (const seed of cluster.seeds) wanted.set(nameOf(seed), seed);
    const isNew = [...wanted].filter(([name]) => !this.nodes.has(name)).map(([, address]) => this.connect(address));
    await Promise.all(isNew);
    for (const [name, node] of this.nodes) {
      if (wanted.has(name) || this.isNeeded(node, wanted)) continue;
      this.nodes.delete(name);
      void node.close();
    }
    return isNew.length > 0;
  }

  private translated(announced: NodeAddress): NodeAddress | undefined {
    try {
      this.fault = undefined;
      return this.context.cluster.translate(announced);
    } catch (error) {
      this.fault = error instanceof Error ? error.message : String(error);
      return undefined;
    }
  }

  // A primary may be reached under the name that was given for it, and not under the one that it announces.
  private isNeeded(node: ClusterNode, wanted: ReadonlyMap<string, NodeAddress>): boolean {
    if (!this.map.primaries.has(node.id)) return false;
    const twins = this.connected.filter(({ id }) => id === node.id);
    return !twins.some(({ name }) => wanted.has(name)) && this.nodeOf(node.id) === node;
  }

  private get anyHost(): string {
    return (this.connected[0]?.address ?? this.context.cluster.seeds[0])?.host ?? '';
  }

  private connect(address: NodeAddress): Promise<void> {
    const { context, clock } = this;
    const client = context.cluster.clientFor(address);
    client.options.connectionName ??= `nestjs-redlock:${context.settings.instance}`;
    const node = new ClusterNode({
      ...{ address, client, clock, languageOf: context.languageOf },
      patience: context.patience,
      asksSlots: context.cluster.nodeTimeout !== undefined,
      isGuarded: context.guard !== undefined,
      ready: (ready, isLate) => {
        context.ready(ready, isLate);
        this.refreshSoon();
      },
      lost: () => {
        context.lost();
        this.refreshSoon();
      },
    });
    this.nodes.set(nameOf(address), node);
    return node.open();
  }

  private planNext(): void {
    const isSettled = this.context.isSettled();
    this.retry = isSettled ? FIRST_RETRY : Math.min(2 * this.retry, LAST_RETRY);
    this.plan(isSettled ? IDLE_INTERVAL : this.retry);
  }

  private plan(delay: number): void {
    const due = this.clock.read().monotonic + delay;
    if (this.isClosed || this.due <= due) return;
    this.timer?.cancel();
    this.due = due;
    this.timer = this.clock
      .schedule(delay, () => {
        this.due = Infinity;
        void this.refresh().finally(() => this.planNext());
      })
      .unref();
  }
}
