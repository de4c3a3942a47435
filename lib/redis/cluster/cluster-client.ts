import { Cluster, type ClusterOptions, type Redis, type RedisOptions } from 'ioredis';
import { RedlockConfigError } from '../../settings/config.error.js';
import { list } from '../../settings/table.js';
import { backoff, OWN_SETTINGS } from '../connection.js';
import { askBeforeConnecting, type Login, splitLogin } from '../login.js';
import { type RedisClient, refuseMock } from '../redis-client.interface.js';
import type { RedisClusterOptions } from '../source.interface.js';
import {
  checkEndpoint,
  endpointOf,
  hasForm,
  type HostListForm,
  isPlainObject,
  type NodeAddress,
  redactAddress,
  REDIS_PORT,
  settingsOfUrl,
  splitEndpoint,
  splitHostListUrl,
  UrlError,
} from '../urls.js';

const FORM: HostListForm = {
  scheme: 'cluster',
  names: ['a node', 'the nodes of a cluster'],
  defaultPort: REDIS_PORT,
  parameters: ['family', 'db'],
  insteadOfFragment: 'a # in a password is written %23',
};
const NODE = 'host:port, a redis:// or rediss:// URL, or { host, port }';
const REQUIREMENT =
  'must be a redis+cluster:// or rediss+cluster:// URL, options with the nodes of a cluster, or an ioredis Cluster';

export function isClusterSource(source: unknown): boolean {
  if (typeof source === 'string') return hasForm(source, FORM);
  if (typeof source !== 'object' || source === null) return false;
  // Clients of one server have a method `cluster`.
  if ('isCluster' in source) return source.isCluster === true;
  return 'cluster' in source && source.cluster !== undefined && typeof source.cluster !== 'function';
}

// A redirection is followed at once, or the command fails: like any other, it is not sent later.
// Protocol 4.1
const SETTINGS: ClusterOptions = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  keyPrefix: '',
  scaleReads: 'master',
  scripts: undefined,
  maxRedirections: 4,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 0,
  retryDelayOnMoved: 0,
  clusterRetryStrategy: backoff,
};

interface Seeds {
  readonly nodes: readonly NodeAddress[];
  readonly redisOptions: RedisOptions;
  readonly login?: Login | undefined;
}

// Any error while the source is read means that the source is invalid.
export function clusterClient(option: string, source: unknown): ClusterClient {
  try {
    const client =
      typeof source === 'object' && source !== null && 'isCluster' in source
        ? copyOf(option, source as unknown as ClientToCopy)
        : clientFor(option, source as string | RedisClusterOptions);
    refuseMock(option, client);
    return client;
  } catch (error) {
    if (error instanceof RedlockConfigError) throw error;
    const value = typeof source === 'string' ? redactAddress(source) : source;
    throw new RedlockConfigError(option, value, error instanceof UrlError ? error.message : REQUIREMENT);
  }
}

interface ClientToCopy {
  // Declared private by ioredis.
  readonly startupNodes: readonly unknown[];
  readonly options: ClusterOptions;
  duplicate(nodes: [], options: ClusterOptions): Cluster;
}

function copyOf(option: string, client: ClientToCopy): ClusterClient {
  const nodes = client.startupNodes.map((node, i) => nodeOf(`${option}.startupNodes[${i}]`, node).address);
  const redisOptions = { ...client.options.redisOptions, ...OWN_SETTINGS };
  return new ClusterClient(client.duplicate([], { ...SETTINGS, redisOptions }), { nodes, redisOptions });
}

function clientFor(option: string, source: string | RedisClusterOptions): ClusterClient {
  const { natMap, ...given } =
    typeof source === 'string' ? { ...seedsOfUrl(source), natMap: undefined } : seedsOf(option, source);
  const redisOptions = { ...given.redisOptions, ...OWN_SETTINGS };
  const cluster = new Cluster([...given.nodes], { ...SETTINGS, redisOptions, ...(natMap && { natMap }) });
  return new ClusterClient(cluster, { ...given, redisOptions });
}

function seedsOfUrl(address: string): Seeds {
  const { hosts, settings, usesTls, path, query } = splitHostListUrl(address, FORM);
  if (!['', '/', '/0'].includes(path) || (query.get('db') ?? '0') !== '0') {
    throw new UrlError('must have no path: a cluster has no database but 0, and a / in a password is written %2F');
  }
  const nodes = hosts.map(({ host, port }, i) => checkEndpoint(`cluster[${i}]`, host, port));
  return { nodes, redisOptions: { ...settings, ...(usesTls && { tls: {} }) } };
}

function seedsOf(option: string, given: RedisClusterOptions): Seeds & Pick<ClusterOptions, 'natMap'> {
  const { cluster, natMap, durable: _, ...all } = given as RedisClusterOptions & { durable?: unknown };
  const { login, options } = splitLogin(option, all);
  for (const name of ['host', 'port', 'path', 'sentinels'] as const) {
    const value: unknown = Reflect.get(options, name);
    if (value != null)
      throw new RedlockConfigError(`${option}.${name}`, value, 'must be absent: the nodes are given as cluster');
  }
  const seeds = list(`a list of at least one node: ${NODE}`, nodeOf, 1)(`${option}.cluster`, cluster);
  const nodes = seeds.map(({ address }) => address);
  const common = seeds.find(({ settings }) => settings)?.settings;
  return { nodes, natMap, login, redisOptions: { ...common, ...options } };
}

interface Seed {
  readonly address: NodeAddress;
  readonly settings?: RedisOptions;
}

// With the defaults of ioredis, for which a number is a port.
function nodeOf(option: string, node: unknown): Seed {
  if (typeof node === 'string' && /^rediss?:\/\//i.test(node)) {
    const given = settingsOfUrl(node);
    if (typeof given === 'string') throw new RedlockConfigError(option, redactAddress(node), given);
    const { host, port, db: _, ...settings } = given;
    return { address: checkEndpoint(option, host, port), settings };
  }
  const isPort = typeof node === 'number' || (typeof node === 'string' && /^\d+$/.test(node));
  const { host, port } = isPort
    ? { host: '127.0.0.1', port: Number(node) }
    : ((typeof node === 'string' ? splitEndpoint(node, REDIS_PORT) : isPlainObject(node) ? node : undefined) ?? {});
  if (host === undefined) {
    throw new RedlockConfigError(option, typeof node === 'string' ? redactAddress(node) : node, `must be ${NODE}`);
  }
  return { address: checkEndpoint(option, host, port === undefined ? REDIS_PORT : Number(port)) };
}

// What this library uses of the client of a cluster, as of that of one server.
export class ClusterClient implements RedisClient {
  readonly options: RedisOptions;
  readonly nodes: readonly NodeAddress[];
  private readonly login: Login | undefined;

  constructor(
    readonly cluster: Cluster,
    { nodes, redisOptions, login }: Seeds,
  ) {
    this.options = redisOptions;
    this.nodes = nodes;
    this.login = login;
    // Later, because a redirection connects to the new node itself.
    cluster.on('+node', (node: Redis) => {
      askBeforeConnecting(node, login, redisOptions);
      if (cluster.status === 'ready') setImmediate(() => void connectNode(node));
    });
  }

  get name(): string {
    return `cluster of ${[...new Set(this.nodes.map(endpointOf))].sort().join(', ')}`;
  }

  get status(): string {
    return this.cluster.status;
  }

  call(command: string, args: (string | number)[]): Promise<unknown> {
    return this.cluster.call(command, args);
  }

  connect(): Promise<void> {
    return this.cluster.connect();
  }

  // To all nodes, which ioredis connects to when it needs them: until then, it refuses a second command, and does not see
  // that a node is gone.
  async connectNodes(): Promise<void> {
    await Promise.all(this.cluster.nodes().map(connectNode));
  }

  subscribe(channel: string): Promise<unknown> {
    return this.cluster.subscribe(channel);
  }

  // For an examination: it does not connect again.
  duplicate(): ClusterClient {
    const settings = { enableReadyCheck: false, clusterRetryStrategy: () => null };
    const { nodes, login, options: redisOptions } = this;
    return new ClusterClient(this.cluster.duplicate([], settings), { nodes, login, redisOptions });
  }

  disconnect(reconnect?: boolean): void {
    this.cluster.disconnect(reconnect);
  }

  // The reason why no node could be asked is that of the last one.
  on(event: string, listener: (...args: unknown[]) => void): void {
    this.cluster.on(event, (first: unknown, ...rest: unknown[]) => {
      const cause = event === 'error' ? (first as { lastNodeError?: unknown } | undefined)?.lastNodeError : undefined;
      listener(cause ?? first, ...rest);
    });
  }
}

// Events report a failure.
async function connectNode(node: Redis): Promise<void> {
  if (node.status === 'wait') await node.connect().catch(() => undefined);
}
