import { Redis } from 'ioredis';
import { RedisServer } from '../../scripts/redis-servers.mjs';
import { command } from '../support/command.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { type GhostKey } from './evidence.js';

/** Keys that outlive all locks: a hash of bounded size, and the marker. */
const LASTING = /\0(?:fences|run)$/;
/** Queues are short, and expire by themselves. */
const QUEUE = /\0(?:queue|permits):/;

type StoredKey = Omit<GhostKey, 'master'>;

export async function keysAt(port: number): Promise<StoredKey[]> {
  const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 0, retryStrategy: () => null });
  try {
    const keys = await client.keys('*');
    return await Promise.all(keys.map(async (key) => ({ key, ttl: await client.pttl(key) })));
  } finally {
    client.disconnect();
  }
}

/** Whether a key should be gone when every lock has ended. */
export function isGhost({ key, ttl }: StoredKey): boolean {
  // -2: it expired between the two commands.
  return ttl !== -2 && !LASTING.test(key) && !(QUEUE.test(key) && ttl >= 0);
}

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

  keys(): Promise<StoredKey[]> {
    return keysAt(this.server.port);
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
    return keys.flatMap((list, master) => list.filter(isGhost).map((key) => ({ master, ...key })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
