import { createConnection, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import type { SentinelViews } from './sentinel-views.js';
import { keyOf } from './tally.js';

/** The message by which ioredis recognizes a connection that was closed on purpose. */
const CLOSED = 'Connection is closed.';

interface ConnectorOptions {
  /** The settings of TLS to the servers; `undefined` without TLS. */
  readonly tls: object | undefined;
  /** Milliseconds until a socket that does not close is destroyed. */
  readonly disconnectTimeout: number;
}

/** The connections to the primaries of a group: the view names the primary that each of them was opened to. */
export class PrimaryConnections {
  private readonly keys = new WeakMap<object, string>();

  constructor(
    private readonly views: SentinelViews,
    private readonly options: ConnectorOptions,
  ) {}

  /** Identifies the primary that a socket was opened to; `undefined` for another socket and for one that is closed. */
  keyOf(socket: { readonly destroyed?: boolean } | undefined): string | undefined {
    return socket && !socket.destroyed ? this.keys.get(socket) : undefined;
  }

  /** @throws if the sentinels do not name the primary */
  async open(): Promise<Socket> {
    const { tally } = await this.views.ask();
    if (!tally.primary) throw new Error(tally.reason);
    const { host, port } = tally.primary.address;
    const { tls } = this.options;
    const socket = tls ? connectTls({ host, port, ...tls } as ConnectionOptions) : createConnection({ host, port });
    this.keys.set(socket, keyOf(tally.primary));
    return socket;
  }

  /** The class by which a client of ioredis opens its connections, in place of the one for sentinels. */
  get connector(): new () => object {
    const open = (): Promise<Socket> => this.open();
    const { disconnectTimeout } = this.options;
    return class Connector {
      connecting = false;
      firstError: Error | undefined;
      private socket: Socket | undefined;

      async connect(): Promise<Socket> {
        this.connecting = true;
        const socket = await open();
        if (this.isClosed()) {
          socket.destroy();
          throw new Error(CLOSED);
        }
        this.socket = socket;
        socket.once('error', (error) => (this.firstError = error));
        return socket;
      }

      private isClosed(): boolean {
        return !this.connecting;
      }

      /** A replica is left at once: the sentinels will name another server. */
      check({ role }: { readonly role?: string }): boolean {
        return role === undefined || role === 'master';
      }

      disconnect(): void {
        this.connecting = false;
        const { socket } = this;
        if (!socket) return;
        const timer = setTimeout(() => socket.destroy(), disconnectTimeout);
        socket.once('close', () => clearTimeout(timer));
        socket.end();
      }
    };
  }
}
