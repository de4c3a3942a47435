import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { type NodeLine, parseNodes } from './cluster-lines.js';
import { command } from './command.js';
import { busSource, replicationSource, SidedProxy } from './sided-proxy.js';

export interface ClusterNodeOptions {
  readonly nodeTimeout: number;
  /** More arguments of the server. They override the defaults. */
  readonly args: readonly string[] | ((port: number) => readonly string[]);
  /** Puts proxies in front of the bus and of replication. */
  readonly partitions: boolean;
}

/** One server in cluster mode, with its proxies. */
export class ClusterNode implements AsyncDisposable {
  private state: 'up' | 'paused' | 'down' = 'up';

  private constructor(
    readonly server: RedisServer,
    /** Node id, which outlives restarts. */
    readonly id: string,
    private readonly folder: string,
    private readonly proxies: Proxies | undefined,
  ) {}

  static async start({ nodeTimeout, args, partitions }: ClusterNodeOptions): Promise<ClusterNode> {
    const proxies = partitions ? await startProxies() : undefined;
    const server = await RedisServer.start({
      args: (port) => [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)],
        ...['--cluster-port', String(busPort(port)), '--cluster-announce-ip', '127.0.0.1'],
        ...(proxies ? ['--cluster-announce-port', String(proxies.data.port)] : []),
        ...(proxies ? ['--cluster-announce-bus-port', String(proxies.bus.port)] : []),
        // Replicas are fit to be promoted at once, and connect again without a pause of seconds.
        ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
        ...(typeof args === 'function' ? args(port) : args),
      ],
    });
    if (proxies) {
      proxies.data.target = server.port;
      proxies.bus.target = busPort(server.port);
    }
    const id = (await command(server.port, 'CLUSTER', 'MYID')) as string;
    const [, folder] = (await command(server.port, 'CONFIG', 'GET', 'dir')) as [string, string];
    return new ClusterNode(server, id, folder, proxies);
  }

  /** Port that the node announces, to clients and in CLUSTER NODES: its own, or that of its proxy. */
  get port(): number {
    return this.proxies?.data.port ?? this.server.port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Port that other nodes connect to. */
  get busPort(): number {
    return this.proxies?.bus.port ?? busPort(this.server.port);
  }

  /** Runs, and is not paused. */
  get isUp(): boolean {
    return this.state === 'up';
  }

  /** Sends a command over its own connection, past the proxies. */
  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return command(this.server.port, name, ...args);
  }

  /** What this node says of the cluster. */
  async lines(): Promise<NodeLine[]> {
    return parseNodes((await this.command('CLUSTER', 'NODES')) as string);
  }

  /** One field of CLUSTER INFO or INFO. */
  async field(name: string): Promise<string | undefined> {
    const text = `${String(await this.command('CLUSTER', 'INFO'))}\r\n${String(await this.command('INFO'))}`;
    return new RegExp(`^${name}:(.*)\r$`, 'm').exec(text)?.[1];
  }

  pause(): void {
    this.server.pause();
    this.state = 'paused';
  }

  resume(): void {
    this.server.resume();
    this.state = 'up';
  }

  async kill(): Promise<void> {
    this.state = 'down';
    await this.server.kill();
  }

  async restart(): Promise<void> {
    await rm(join(this.folder, 'dump.rdb'), { force: true });
    await this.server.restart();
    this.state = 'up';
  }

  /** Discards what the source sends to this node and receives from it. */
  cutOff(isCut: (source: { readonly id?: string; readonly serverPort?: number }) => boolean): void {
    if (!this.proxies) throw new Error('startCluster({ partitions: true }) puts the proxies in place for partitions');
    this.proxies.bus.cuts = (id) => isCut({ id });
    this.proxies.data.cuts = (port) => isCut({ serverPort: Number(port) });
  }

  heal(): void {
    this.cutOff(() => false);
    this.proxies?.bus.heal();
    this.proxies?.data.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    await Promise.all([this.proxies?.bus[Symbol.asyncDispose](), this.proxies?.data[Symbol.asyncDispose]()]);
  }
}

interface Proxies {
  readonly bus: SidedProxy;
  readonly data: SidedProxy;
}

async function startProxies(): Promise<Proxies> {
  return { bus: await SidedProxy.start(busSource), data: await SidedProxy.start(replicationSource) };
}

// Like the ports of RedisServer, below those from which systems number outgoing connections: a node that restarts needs
// the same port again.
function busPort(port: number): number {
  return port < 22_000 ? port + 10_000 : port - 10_000;
}
