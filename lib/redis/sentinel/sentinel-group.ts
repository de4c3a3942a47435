import { createConnection, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { keyOf, Sentinel, SentinelViews } from './sentinel-views.js';
import { Redis, type RedisOptions } from 'ioredis';
import type { Clock } from '../../core/clock.js';
import { type NodeAddress, sentinelsIn, translationBy } from '../urls.js';
import { OWN_SETTINGS, secretsOf } from '../connection.js';
import type { RedisClient } from '../redis-client.interface.js';

// The message by which ioredis recognizes a connection that was closed on purpose.
const CLOSED = 'Connection is closed.';

// The view names the primary that each connection was opened to.
class PrimaryConnections {
  private readonly keys = new WeakMap<object, string>();

  constructor(
    private readonly views: SentinelViews,
    private readonly tls: object | undefined,
  ) {}

  // `undefined` for another socket and for one that is closed.
  keyOf(socket: { readonly destroyed?: boolean } | undefined): string | undefined {
    return socket && !socket.destroyed ? this.keys.get(socket) : undefined;
  }

  async open(): Promise<Socket> {
    const { tally } = await this.views.ask();
    if (!tally.primary) throw new Error(tally.reason);
    const { host, port } = tally.primary.address;
    const { tls } = this;
    const socket = tls ? connectTls({ host, port, ...tls } as ConnectionOptions) : createConnection({ host, port });
    this.keys.set(socket, keyOf(tally.primary));
    return socket;
  }

  // The class by which a client of ioredis opens its connections, in place of the one for sentinels.
  get connector(): new () => object {
    const open = (): Promise<Socket> => this.open();
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

      check({ role }: { readonly role?: string }): boolean {
        return role === undefined || role === 'master';
      }

      disconnect(): void {
        this.connecting = false;
        const { socket } = this;
        if (!socket) return;
        const timer = setTimeout(() => socket.destroy(), OWN_SETTINGS.disconnectTimeout);
        socket.once('close', () => clearTimeout(timer));
        socket.end();
      }
    };
  }
}

export interface SentinelGroup {
  readonly views: SentinelViews;
  readonly connections: PrimaryConnections;
}

export function sentinelGroup(
  option: string,
  settings: RedisOptions,
  context: { readonly clock: Clock; readonly isStrict: boolean },
): SentinelGroup {
  const { sentinels, natMap, updateSentinels, enableTLSForSentinelMode, tls, ...login } = settings;
  const name = settings.name ?? '';
  const translate = translationBy(`${option}.natMap`, natMap);
  const secrets = secretsOf(settings);
  const families = new Map((sentinels ?? []).map(({ host, family }) => [host, family]));
  const open = (address: NodeAddress): RedisClient =>
    new Redis({
      ...address,
      ...{ username: login.sentinelUsername ?? undefined, password: login.sentinelPassword ?? undefined },
      ...{ family: families.get(address.host) ?? login.family, tls: login.sentinelTLS },
      ...{
        lazyConnect: true,
        retryStrategy: null,
        enableReadyCheck: false,
        replyMapping: 'legacy',
        maxRetriesPerRequest: 0,
      },
      connectionName: settings.connectionName ?? undefined,
      disconnectTimeout: OWN_SETTINGS.disconnectTimeout,
    });
  const views = new SentinelViews({
    ...context,
    name,
    listed: sentinelsIn(settings),
    asksPeers: updateSentinels !== false,
    open: (address) => new Sentinel({ name, translate, secrets, open: () => open(address) }),
  });
  const connections = new PrimaryConnections(views, enableTLSForSentinelMode ? tls : undefined);
  return { views, connections };
}
