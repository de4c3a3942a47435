import { Redis } from 'ioredis';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { type GhostKey } from './evidence.js';

/** Keys that outlive all locks: a hash of bounded size, and the marker. */
const LASTING = /\0(?:fences|run)$/;
/** Queues are short, and expire by themselves. */
const QUEUE = /\0(?:queue|permits):/;

/** One master: a server and its proxy. */
export class Node {
  private constructor(
    readonly server: RedisServer,
    readonly proxy: TcpProxy,
  ) {}

  static async start(): Promise<Node> {
    const server = await RedisServer.start();
    return new Node(server, await TcpProxy.to(server.port));
  }

  /** Sends a command directly, without the proxy. */
  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return command(this.server.port, name, ...args);
  }

  /** Its keys, and when they expire. */
  async keys(): Promise<Omit<GhostKey, 'master'>[]> {
    const client = new Redis(this.server.port, '127.0.0.1', { maxRetriesPerRequest: 0, retryStrategy: () => null });
    try {
      const keys = await client.keys('*');
      return await Promise.all(keys.map(async (key) => ({ key, ttl: await client.pttl(key) })));
    } finally {
      client.disconnect();
    }
  }

  async stop(): Promise<void> {
    await this.proxy.close();
    await this.server.stop();
  }
}

export class Cluster implements AsyncDisposable {
  private constructor(readonly nodes: readonly Node[]) {}

  static async start(count: number): Promise<Cluster> {
    const starts = await Promise.allSettled(Array.from({ length: count }, () => Node.start()));
    const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    const cluster = new Cluster(nodes);
    const failed = starts.find((start) => start.status === 'rejected');
    if (!failed) return cluster;
    await cluster[Symbol.asyncDispose]();
    throw failed.reason;
  }

  get urls(): string[] {
    return this.nodes.map(({ proxy }) => proxy.url);
  }

  /** Keys that should be gone when every lock has ended. */
  async ghosts(): Promise<GhostKey[]> {
    const keys = await Promise.all(this.nodes.map((node) => node.keys()));
    // -2: it expired between the two commands.
    const isGhost = ({ key, ttl }: GhostKey): boolean =>
      ttl !== -2 && !LASTING.test(key) && !(QUEUE.test(key) && ttl >= 0);
    return keys.flatMap((list, master) => list.map((key) => ({ master, ...key })).filter(isGhost));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
