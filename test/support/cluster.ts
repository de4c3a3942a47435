// A Redis Cluster of real servers, and the faults that it can have:
//
//   await using cluster = await startCluster({ partitions: true });
//   const primary = await cluster.primaryOf(slotOf('a'));
//   await cluster.kill(primary); // restart, pause and resume, flush, failover, moveSlot, partition and heal
//   await cluster.waitUntil((lines) => owns(line(lines, replica), slot));
//
// Faults take effect and return; only failover, the last step of a move, join and remove wait for what they lead to.
import { setTimeout } from 'node:timers/promises';
import { line, type NodeLine, ownLine, owns } from './cluster-lines.js';
import { moveSlot, type MoveOptions } from './cluster-moves.js';
import { ClusterNode, type ClusterNodeOptions } from './cluster-node.js';
import { startViewpoint, type Viewpoint } from './cluster-viewpoint.js';
import { eventually } from './eventually.js';

export { line, ownLine, owns, type NodeLine } from './cluster-lines.js';
export { ClusterNode } from './cluster-node.js';
export type { MoveOptions, MoveStep } from './cluster-moves.js';
export type { Viewpoint } from './cluster-viewpoint.js';

const SLOTS = 16_384;
/** For what hangs, and not for what is slow: an election takes some node timeouts, on a busy machine more. */
const PATIENCE = 60_000;
/** A replica gives up a failover after five seconds, as on a busy machine, and has to be asked again. In milliseconds. */
const FAILOVER_WITHIN = 10_000;
/** Milliseconds between two looks at the nodes. */
const PACE = 25;
const MOVE_IS_OVER = new Set(['success', 'failed', 'cancelled']);

export interface ClusterOptions extends Partial<ClusterNodeOptions> {
  /** @default 3 */
  readonly primaries?: number;
  /** All replicas: one each for the first primaries, then the second ones. @default as many as primaries */
  readonly replicas?: number;
  /** `cluster-node-timeout` in milliseconds. @default 2000 */
  readonly nodeTimeout?: number;
  /** More arguments of each server, e.g. `['--cluster-require-full-coverage', 'no']`. They override the defaults. */
  readonly args?: ClusterNodeOptions['args'];
  /** Needed for {@link TestCluster.partition}: the nodes announce proxies instead of themselves. @default false */
  readonly partitions?: boolean;
}

/**
 * Starts a cluster of real servers on loopback. When it resolves, each node reports `cluster_state:ok`, and each
 * replica follows its primary. `await using` ends it.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { primaries = 3, replicas = primaries, nodeTimeout = 2000, args = [], partitions = false } = options;
  const cluster = new TestCluster({ nodeTimeout, args, partitions });
  try {
    await cluster.form(primaries, replicas);
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

export class TestCluster implements AsyncDisposable {
  /** Those that started as primaries first, then the replicas. They keep their places whatever their roles become. */
  readonly nodes: ClusterNode[] = [];

  constructor(private readonly options: ClusterNodeOptions) {}

  get urls(): string[] {
    return this.nodes.map(({ url }) => url);
  }

  /** The node with this id. */
  node(id: string): ClusterNode {
    const node = this.nodes.find((candidate) => candidate.id === id);
    if (!node) throw new Error(`No node has the id ${id}`);
    return node;
  }

  /** Owner of the slot: the node that claims it itself, with the largest epoch if several do. Only nodes that are up. */
  async primaryOf(slot: number): Promise<ClusterNode> {
    const own = await Promise.all(this.up().map(ownLine));
    const [owner] = own.filter((line) => owns(line, slot)).sort((one, other) => other.epoch - one.epoch);
    if (!owner) throw new Error(`No node that is up owns slot ${slot}`);
    return this.node(owner.id);
  }

  /** A replica of this primary that is up; the first of several. The primary itself may be down. */
  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const own = await Promise.all(this.up().map(ownLine));
    const replica = own.find((line) => line.primary === primary.id);
    if (!replica) throw new Error(`No node that is up replicates ${primary.id}`);
    return this.node(replica.id);
  }

  /** SIGKILL. Nothing is written to disk. */
  kill(node: ClusterNode): Promise<void> {
    return node.kill();
  }

  /**
   * Starts a node again, empty, with the same id and port. It is killed first if it is up. Does not wait for the cluster;
   * see {@link settled}.
   */
  restart(node: ClusterNode): Promise<void> {
    return node.restart();
  }

  /** SIGSTOP: connections stay open, and commands queue. */
  pause(node: ClusterNode): void {
    node.pause();
  }

  /** SIGCONT: the node executes what queued. */
  resume(node: ClusterNode): void {
    node.resume();
  }

  /** FLUSHALL. */
  async flush(node: ClusterNode): Promise<void> {
    await node.command('FLUSHALL');
  }

  /** Promotes a replica. Resolves when each node that is up sees it as a primary with slots. */
  async failover(replica: ClusterNode, mode: 'graceful' | 'force' | 'takeover'): Promise<void> {
    const how = mode === 'graceful' ? [] : [mode.toUpperCase()];
    let askedAt = -Infinity;
    await this.poll(async () => {
      const views = await Promise.all(this.up().map((node) => node.lines()));
      const own = line(await replica.lines(), replica);
      if (!own.isPrimary && performance.now() - askedAt > FAILOVER_WITHIN) {
        askedAt = performance.now();
        await replica.command('CLUSTER', 'FAILOVER', ...how);
      }
      return views.every((lines) => line(lines, replica).isPrimary && line(lines, replica).ranges.length > 0);
    });
  }

  /** Moves a slot, or does the given steps of it. The step `node` ends when each node that is up sees the new owner. */
  async moveSlot(slot: number, to: ClusterNode, options: MoveOptions = {}): Promise<void> {
    const { from = await this.primaryOf(slot) } = options;
    await moveSlot({ ...options, slot, from, to, nodes: this.up() });
    if (options.steps && !options.steps.includes('node')) return;
    await this.waitUntil((lines) => owns(line(lines, to), slot));
  }

  /** Moves a slot as a whole, where the server can: Valkey 9. Step by step otherwise. */
  async moveSlotAtOnce(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.primaryOf(slot);
    if (!(await beginMoveAtOnce(slot, from, to))) await moveSlot({ slot, from, to, nodes: this.up() });
    await this.waitUntil((lines) => owns(line(lines, to), slot));
  }

  /** Begins such a move, which cannot end because its target stands still, and gives it up after `meanwhile`. */
  async giveUpMoveAtOnce(slot: number, to: ClusterNode, meanwhile: () => Promise<void>): Promise<void> {
    const from = await this.primaryOf(slot);
    this.pause(to);
    const isAtOnce = await beginMoveAtOnce(slot, from, to);
    if (!isAtOnce) await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    await meanwhile();
    await (isAtOnce
      ? from.command('CLUSTER', 'CANCELSLOTMIGRATIONS')
      : from.command('CLUSTER', 'SETSLOT', slot, 'STABLE'));
    this.resume(to);
    // A move that was not given up would end now.
    if (isAtOnce) await eventually(async () => (await movesAtOnce(from)).every((state) => MOVE_IS_OVER.has(state)));
  }

  /**
   * Cuts the bus and the replication between the groups; nodes of no group form one more. Clients connect as before:
   * give each its own {@link viewpoint}, and limit that. Resolves at once, and replaces an earlier partition.
   */
  partition(...groups: readonly (readonly ClusterNode[])[]): void {
    const side = (node: ClusterNode): number => groups.findIndex((group) => group.includes(node));
    for (const node of this.nodes) {
      node.cutOff(({ id, serverPort }) => {
        const source = this.nodes.find((other) => other.id === id || other.server.port === serverPort);
        return source !== undefined && side(source) !== side(node);
      });
    }
  }

  /** Ends a partition. Does not wait for the cluster; see {@link settled}. */
  heal(): void {
    for (const node of this.nodes) node.heal();
  }

  /** Proxies for one client, before all nodes. */
  viewpoint(): Promise<Viewpoint> {
    return startViewpoint(this.nodes);
  }

  /** Starts a node and joins it as a primary without slots. It becomes the last of `nodes`. */
  async join(): Promise<ClusterNode> {
    const node = await this.startNode();
    await this.meet(node);
    await this.settled();
    return node;
  }

  /** Ends a node, and lets the others forget it. Move its slots away before. */
  async remove(node: ClusterNode): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    await Promise.all(this.up().map((other) => other.command('CLUSTER', 'FORGET', node.id)));
    await node[Symbol.asyncDispose]();
  }

  /** Polls CLUSTER NODES until the condition holds for what each of `seenBy` says. @default each node that is up */
  async waitUntil(
    condition: (lines: readonly NodeLine[]) => boolean,
    { seenBy = this.up() }: { readonly seenBy?: readonly ClusterNode[] } = {},
  ): Promise<void> {
    await this.poll(async () => {
      const views = await Promise.all(seenBy.map((node) => node.lines()));
      return views.every(condition);
    });
  }

  /**
   * Resolves when each node that is up says `cluster_state:ok`, knows all nodes, and follows its primary if it is a
   * replica. With full coverage, which is the default of the servers, each slot needs an owner that is up.
   */
  async settled(): Promise<void> {
    await this.waitUntil((lines) => lines.length === this.nodes.length && !lines.some(isStranger));
    await this.poll(async () => {
      const states = await Promise.all(this.up().map((node) => node.field('cluster_state')));
      const links = await Promise.all(this.up().map((node) => node.field('master_link_status')));
      return states.every((state) => state === 'ok') && links.every((link) => link !== 'down');
    });
  }

  async form(primaries: number, replicas: number): Promise<void> {
    const starts = await Promise.allSettled(Array.from({ length: primaries + replicas }, () => this.startNode()));
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    for (const [index, node] of this.nodes.entries()) {
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      if (index >= primaries) continue;
      const [first, next] = [index, index + 1].map((part) => Math.round((part * SLOTS) / primaries));
      await node.command('CLUSTER', 'ADDSLOTSRANGE', first!, next! - 1);
    }
    for (const node of this.nodes.slice(1)) await this.meet(node);
    await this.waitUntil((lines) => lines.length === this.nodes.length && !lines.some(isStranger));
    for (const [index, replica] of this.nodes.slice(primaries).entries()) {
      await replica.command('CLUSTER', 'REPLICATE', this.nodes[index % primaries]!.id);
    }
    await this.waitUntil((lines) => lines.filter(({ primary }) => primary !== undefined).length === replicas);
    await this.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
  }

  private async startNode(): Promise<ClusterNode> {
    const node = await ClusterNode.start(this.options);
    this.nodes.push(node);
    return node;
  }

  private async meet(node: ClusterNode): Promise<void> {
    const [known] = this.up();
    await known?.command('CLUSTER', 'MEET', '127.0.0.1', node.port, node.busPort);
  }

  private up(): ClusterNode[] {
    return this.nodes.filter(({ isUp }) => isUp);
  }

  // Not in one go: each look opens connections to all nodes, which would take the time of the servers.
  private poll(condition: () => Promise<boolean>): Promise<void> {
    return eventually(async () => (await condition()) || (await setTimeout(PACE, false)), PATIENCE);
  }
}

/** Returns whether the server can move a slot as a whole. */
async function beginMoveAtOnce(slot: number, from: ClusterNode, to: ClusterNode): Promise<boolean> {
  try {
    await from.command('CLUSTER', 'MIGRATESLOTS', 'SLOTSRANGE', slot, slot, 'NODE', to.id);
    return true;
  } catch (error) {
    if (!/unknown subcommand/i.test(String(error))) throw error;
    return false;
  }
}

/** The states of all moves as a whole away from a node. */
async function movesAtOnce(from: ClusterNode): Promise<string[]> {
  const moves = (await from.command('CLUSTER', 'GETSLOTMIGRATIONS')) as string[][];
  return moves.map((fields) => fields[fields.indexOf('state') + 1] ?? '');
}

function isStranger({ flags, connected }: NodeLine): boolean {
  return !connected || flags.includes('handshake') || flags.includes('noaddr');
}
