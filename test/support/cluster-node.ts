import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { type NodeLine, parseNodes } from './cluster-lines.js';
import { command } from './command.js';

export interface ClusterNodeOptions {
  readonly nodeTimeout: number;
  /** More arguments of the server. They override the defaults. */
  readonly args: readonly string[] | ((port: number) => readonly string[]);
}

/** One server in cluster mode. */
export class ClusterNode implements AsyncDisposable {
  private state: 'up' | 'paused' | 'down' = 'up';

  private constructor(
    readonly server: RedisServer,
    /** Node id, which outlives restarts. */
    readonly id: string,
    private readonly folder: string,
  ) {}

  static async start({ nodeTimeout, args }: ClusterNodeOptions): Promise<ClusterNode> {
    const server = await RedisServer.start({
      args: (port) => [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)],
        ...['--cluster-port', String(busPort(port)), '--cluster-announce-ip', '127.0.0.1'],
        // Replicas are fit to be promoted at once, and connect again without a pause of seconds.
        ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
        ...(typeof args === 'function' ? args(port) : args),
      ],
    });
    const id = (await command(server.port, 'CLUSTER', 'MYID')) as string;
    const [, folder] = (await command(server.port, 'CONFIG', 'GET', 'dir')) as [string, string];
    return new ClusterNode(server, id, folder);
  }

  get port(): number {
    return this.server.port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Port that other nodes connect to. */
  get busPort(): number {
    return busPort(this.server.port);
  }

  /** Runs, and is not paused. */
  get isUp(): boolean {
    return this.state === 'up';
  }

  /** Sends a command over its own connection. */
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

  /** Starts it again, empty, with the same id and port. */
  async restart(): Promise<void> {
    await rm(join(this.folder, 'dump.rdb'), { force: true });
    await this.server.restart();
    this.state = 'up';
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server.stop();
  }
}

// Like the ports of RedisServer, below those from which systems number outgoing connections: a node that restarts needs
// the same port again.
function busPort(port: number): number {
  return port < 22_000 ? port + 10_000 : port - 10_000;
}
