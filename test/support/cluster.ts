// A Redis Cluster of real servers. Faults take effect and return; only the move of a slot waits for what it leads to.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from './command.js';
import { eventually } from './eventually.js';

const SLOTS = 16_384;
/** For what hangs, and not for what is slow: an election takes some node timeouts, on a busy machine more. */
const PATIENCE = 60_000;
/** Milliseconds between two looks at the nodes. */
const PACE = 25;
const PRIMARIES = 3;

interface ClusterOptions {
  /** One for each of the three primaries, or none. @default 3 */
  readonly replicas?: 0 | 3;
  /** `cluster-node-timeout` in milliseconds. @default 2000 */
  readonly nodeTimeout?: number;
  /** More arguments of each server. They override the defaults. */
  readonly args?: readonly string[];
}

/** One line of CLUSTER NODES. */
interface NodeLine {
  readonly id: string;
  /** `myself`, `master`, `slave`, `fail?`, `fail`, `handshake`, `noaddr`, ... */
  readonly flags: readonly string[];
  /** Id of the primary of a replica, or `-`. */
  readonly primary: string;
  readonly epoch: number;
  readonly isConnected: boolean;
  /** First and last slot of each range. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

/** One server in cluster mode. */
export class ClusterNode {
  /** Runs, and is not paused. */
  isUp = true;

  private constructor(
    readonly server: RedisServer,
    /** Node id, which outlives restarts. */
    readonly id: string,
    private readonly folder: string,
  ) {}

  static async start(nodeTimeout: number, args: readonly string[]): Promise<ClusterNode> {
    const server = await RedisServer.start({
      args: (port) => [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)],
        ...['--cluster-port', String(busPort(port)), '--cluster-announce-ip', '127.0.0.1'],
        // Replicas are fit to be promoted at once, and connect again without a pause of seconds.
        ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', ...args],
      ],
    });
    const id = (await command(server.port, 'CLUSTER', 'MYID')) as string;
    const [, folder] = (await command(server.port, 'CONFIG', 'GET', 'dir')) as [string, string];
    return new ClusterNode(server, id, folder);
  }

  get port(): number {
    return this.server.port;
  }

  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return command(this.port, name, ...args);
  }

  /** What this node says of the cluster. */
  async lines(): Promise<NodeLine[]> {
    return String(await this.command('CLUSTER', 'NODES'))
      .trim()
      .split('\n')
      .map(parse);
  }

  /** What it says of itself. */
  async line(): Promise<NodeLine> {
    return (await this.lines()).find(({ id }) => id === this.id)!;
  }

  /** One field of CLUSTER INFO or INFO. */
  async field(name: string): Promise<string | undefined> {
    const text = `${String(await this.command('CLUSTER', 'INFO'))}\r\n${String(await this.command('INFO'))}`;
    return new RegExp(`^${name}:(.*)\r$`, 'm').exec(text)?.[1];
  }

  pause(): void {
    this.server.pause();
    this.isUp = false;
  }

  resume(): void {
    this.server.resume();
    this.isUp = true;
  }

  /** Nothing is written to disk. */
  async kill(): Promise<void> {
    this.isUp = false;
    await this.server.kill();
  }

  /** Starts it again, empty, with the same id and port. */
  async restart(): Promise<void> {
    await rm(join(this.folder, 'dump.rdb'), { force: true });
    await this.server.restart();
    this.isUp = true;
  }
}

/**
 * Starts a cluster of three primaries on loopback. When it resolves, each node reports `cluster_state:ok`, and each replica
 * follows its primary.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { replicas = PRIMARIES, nodeTimeout = 2000, args = [] } = options;
  const count = PRIMARIES + replicas;
  const starts = await Promise.allSettled(Array.from({ length: count }, () => ClusterNode.start(nodeTimeout, args)));
  const cluster = new TestCluster(starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : [])));
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    await cluster.form();
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

export class TestCluster implements AsyncDisposable {
  /** @param nodes those that start as primaries first, then a replica for each of them, or none */
  constructor(readonly nodes: readonly ClusterNode[]) {}

  get urls(): string[] {
    return this.nodes.map(({ server }) => server.url);
  }

  /** Owner of the slot: the node that claims it itself, with the largest epoch if several do. Only nodes that are up. */
  async primaryOf(slot: number): Promise<ClusterNode> {
    const own = await Promise.all(this.up().map((node) => node.line()));
    const [owner] = own.filter((line) => owns(line, slot)).sort((one, other) => other.epoch - one.epoch);
    return this.nodes.find(({ id }) => id === owner?.id)!;
  }

  /** The replica of this primary. */
  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const own = await Promise.all(this.up().map((node) => node.line()));
    return this.nodes.find(({ id }) => id === own.find((line) => line.primary === primary.id)?.id)!;
  }

  /** Moves a slot with its keys. Resolves when each node that is up sees the new owner. */
  async moveSlot(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.primaryOf(slot);
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 1_000_000)) as string[];
    for (const key of keys) await from.command('MIGRATE', '127.0.0.1', to.port, key, 0, 10_000);
    // The target first: only the node that imports a slot raises its epoch with the claim.
    for (const node of [to, ...this.up().filter((each) => each !== to)]) {
      if ((await node.line()).primary === '-') await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
    }
    await this.waitUntil((lines) => lines.some((line) => line.id === to.id && owns(line, slot)));
  }

  /**
   * Resolves when each node that is up says `cluster_state:ok`, knows all nodes, and follows its primary if it is a
   * replica.
   */
  async settled(): Promise<void> {
    await this.waitUntil((lines) => lines.length === this.nodes.length && !lines.some(isStranger));
    await this.poll(async () => {
      const states = await Promise.all(this.up().map((node) => node.field('cluster_state')));
      const links = await Promise.all(this.up().map((node) => node.field('master_link_status')));
      return states.every((state) => state === 'ok') && links.every((link) => link !== 'down');
    });
  }

  async form(): Promise<void> {
    const [known, ...others] = this.nodes;
    for (const [index, node] of this.nodes.entries()) {
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      if (index >= PRIMARIES) continue;
      const [first, next] = [index, index + 1].map((part) => Math.round((part * SLOTS) / PRIMARIES));
      await node.command('CLUSTER', 'ADDSLOTSRANGE', first!, next! - 1);
    }
    for (const { port } of others) await known!.command('CLUSTER', 'MEET', '127.0.0.1', port, busPort(port));
    await this.waitUntil((lines) => lines.length === this.nodes.length && !lines.some(isStranger));
    const replicas = this.nodes.slice(PRIMARIES);
    for (const [index, replica] of replicas.entries())
      await replica.command('CLUSTER', 'REPLICATE', this.nodes[index]!.id);
    await this.waitUntil((lines) => lines.filter(({ primary }) => primary !== '-').length === replicas.length);
    await this.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map(({ server }) => server.stop()));
  }

  private up(): ClusterNode[] {
    return this.nodes.filter(({ isUp }) => isUp);
  }

  /** Polls CLUSTER NODES until the condition holds for what each node that is up says. */
  private waitUntil(condition: (lines: readonly NodeLine[]) => boolean): Promise<void> {
    return this.poll(async () => (await Promise.all(this.up().map((node) => node.lines()))).every(condition));
  }

  // Not in one go: each look opens connections to all nodes, which would take the time of the servers.
  private poll(condition: () => Promise<boolean>): Promise<void> {
    return eventually(async () => (await condition()) || (await setTimeout(PACE, false)), PATIENCE);
  }
}

function parse(line: string): NodeLine {
  const [id = '', , flags = '', primary = '-', , , epoch, link, ...slots] = line.trim().split(' ');
  const ranges = slots.filter((slot) => !slot.startsWith('[')).map((range) => range.split('-').map(Number));
  return {
    ...{ id, flags: flags.split(','), primary, epoch: Number(epoch), isConnected: link === 'connected' },
    ranges: ranges.map(([first = NaN, last = first]) => [first, last] as const),
  };
}

function owns({ ranges, flags }: NodeLine, slot: number): boolean {
  return flags.includes('master') && ranges.some(([first, last]) => first <= slot && slot <= last);
}

function isStranger({ flags, isConnected }: NodeLine): boolean {
  return !isConnected || flags.includes('handshake') || flags.includes('noaddr');
}

// Like the ports of RedisServer, below those from which systems number outgoing connections: a node that restarts needs
// the same port again.
function busPort(port: number): number {
  return port < 22_000 ? port + 10_000 : port - 10_000;
}
