import type { Clock, Timer } from '../../core/clock.js';
import { ClusterMap, type KnownPrimary, type NodeView } from './cluster-map.js';
import { ClusterNode } from './cluster-node.js';
import type { ClusterSettings } from './cluster-source.js';
import type { NodeAddress } from '../urls.js';
import type { RedisMasterContext } from '../redis-client.interface.js';
import { Views } from './views.js';

/** While something is missing, the cluster is asked again after so many milliseconds: at first, and at most. */
const FIRST_RETRY = 100;
const LAST_RETRY = 500;
/** An idle process asks the cluster this often, in milliseconds: so it notices a failover before its next lock. */
const IDLE_INTERVAL = 5_000;
/** After this many milliseconds of silence, a connection is suspect: its peer may have vanished unnoticed. */
const RECONNECT_AFTER = 5_000;

interface TopologyContext extends RedisMasterContext {
  readonly cluster: ClusterSettings;
  /** Milliseconds that a node gets to answer. */
  readonly patience: number;
  /** Called when a node can be used, over a new connection or as another process. */
  readonly ready: (node: ClusterNode, isLate: boolean) => void;
  readonly lost: () => void;
  /** Called with partitions whose claims have changed. */
  readonly moved: (partitions: readonly number[]) => void;
  /** Called after each round of questions. */
  readonly asked: () => Promise<void>;
  /** Whether nothing is missing. */
  readonly isSettled: () => boolean;
}

/** The nodes of a cluster, which of them owns what, and the connections to those that are needed. */
export class Topology {
  readonly map: ClusterMap;
  readonly views: Views;
  /** Ids of all nodes that were ever named: clusters with a common one are one cluster. */
  readonly ids = new Set<string>();
  private readonly clock: Clock;
  /** By address. */
  private readonly nodes = new Map<string, ClusterNode>();
  /** Why the announced address of a node cannot be used; `undefined` if nothing is known against any. */
  fault: string | undefined;
  private refreshing: Promise<void> | undefined;
  private timer: Timer | undefined;
  /** When the timer fires. Monotonic. */
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

  /** Nodes with a connection that can be used. */
  get connected(): readonly ClusterNode[] {
    return [...this.nodes.values()].filter(({ isConnected }) => isConnected);
  }

  /** All nodes to which a connection is kept. */
  get all(): readonly ClusterNode[] {
    return [...this.nodes.values()];
  }

  /** Connected primaries that have slots. */
  get primaries(): readonly ClusterNode[] {
    return this.connected.filter(({ id }) => this.map.primaries.has(id));
  }

  /** Whether any of {@link primaries} is connected. Each request asks for this. */
  get hasPrimary(): boolean {
    for (const node of this.nodes.values()) if (node.isConnected && this.map.primaries.has(node.id)) return true;
    return false;
  }

  /** The node that owns a partition; `undefined` while it is unknown. */
  ownerOf(partition: number): ClusterNode | undefined {
    const claim = this.map.claimOf(partition);
    return claim && this.nodeOf(claim.owner);
  }

  /** The node that announces itself as `host:port`, if a connection to it is kept. */
  nodeAnnouncedAs(address: string): ClusterNode | undefined {
    for (const { owner, host, port } of this.map.primaries.values()) {
      if (`${host}:${port}` === address) return this.nodeOf(owner);
    }
    return undefined;
  }

  /** Where a primary announces itself, where this process reaches it, and the connection to it, if one is kept. */
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

  /** Opens the connections. Resolves when the nodes named at first were tried, and the primaries that they name. */
  async open(): Promise<void> {
    await Promise.all(this.context.cluster.seeds.map((address) => this.connect(address)));
    await this.refresh();
    this.planNext();
  }

  /** Asks all nodes, connects to new primaries, and leaves nodes that have no slots any more. One at a time. */
  refresh(): Promise<void> {
    this.refreshing ??= this.ask().finally(() => (this.refreshing = undefined));
    return this.refreshing;
  }

  /** Something is missing: asks soon, and again until nothing is. */
  hurry(): void {
    this.plan(this.retry);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.timer?.cancel();
    await Promise.all(this.all.map((node) => node.close()));
  }

  /** Of several connections to one node, one that can be used. */
  private nodeOf(id: string): ClusterNode | undefined {
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

  /** Connects to primaries that have no connection yet. Returns whether there were any. */
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

  /** A primary may be reached under the name that was given for it, and not under the one that it announces. */
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
      ...{ address, client, clock, observer: context.observer, languageOf: context.languageOf },
      patience: context.patience,
      asksSlots: context.cluster.nodeTimeout !== undefined,
      isGuarded: context.guard !== undefined,
      ready: (ready, isLate) => {
        context.ready(ready, isLate);
        this.hurry();
      },
      lost: () => {
        context.lost();
        this.hurry();
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

/** `host:port`. */
export function nameOf({ host, port }: NodeAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
