// A Redis Cluster of real servers, and the faults that it can have:
//
//   await using cluster = await startCluster();
//   const primary = await cluster.primaryOf(slotOf('a'));
//   await cluster.kill(primary); // failover, moveSlot
//   await cluster.waitUntil((lines) => owns(line(lines, replica), slot));
//
// Faults take effect and return; only failover and the last step of a move wait for what they lead to.
import { setTimeout } from 'node:timers/promises';
import { line, type NodeLine, ownLine, owns } from './cluster-lines.js';
import { moveSlot, type MoveOptions } from './cluster-moves.js';
import { ClusterNode, type ClusterNodeOptions } from './cluster-node.js';
import { eventually } from './eventually.js';

export { line, ownLine, owns, type NodeLine } from './cluster-lines.js';
export { ClusterNode } from './cluster-node.js';
export type { MoveOptions, MoveStep } from './cluster-moves.js';

const SLOTS = 16_384;
/** For what hangs, and not for what is slow: an election takes some node timeouts, on a busy machine more. */
const PATIENCE = 60_000;
/** A replica gives up a failover after five seconds, as on a busy machine, and has to be asked again. In milliseconds. */
const FAILOVER_WITHIN = 10_000;
/** Milliseconds between two looks at the nodes. */
const PACE = 25;

export interface ClusterOptions extends Partial<ClusterNodeOptions> {
  /** @default 3 */
  readonly primaries?: number;
  /** All replicas: one each for the first primaries, then the second ones. @default as many as primaries */
  readonly replicas?: number;
  /** `cluster-node-timeout` in milliseconds. @default 2000 */
  readonly nodeTimeout?: number;
  /** More arguments of each server, e.g. `['--cluster-require-full-coverage', 'no']`. They override the defaults. */
  readonly args?: ClusterNodeOptions['args'];
}

/**
 * Starts a cluster of real servers on loopback. When it resolves, each node reports `cluster_state:ok`, and each
 * replica follows its primary. `await using` ends it.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { primaries = 3, replicas = primaries, nodeTimeout = 2000, args = [] } = options;
  const cluster = new TestCluster({ nodeTimeout, args });
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

function isStranger({ flags, connected }: NodeLine): boolean {
  return !connected || flags.includes('handshake') || flags.includes('noaddr');
}
