import type { Settings } from '../core/settings/settings.js';
import type { ClusterSettings } from './cluster/cluster-source.js';
import type { RedisOptions } from 'ioredis';
import { DEFAULT_HOST, nameOf, REDIS_PORT, sentinelsIn } from './urls.js';

// Strings that a shell takes as they are.
const PLAIN = /^[\w.:/@%+=-]+$/;

export function placeholderUrlOf(options: RedisOptions): string {
  const { host = DEFAULT_HOST, port = REDIS_PORT, path, sentinels, tls, username, password, db } = options;
  if (sentinels && canBeUrl(options)) return sentinelUrlOf(options);
  if (path) return path;
  const address = sentinels ? 'PRIMARY:6379' : nameOf({ host, port });
  return `${tls ? 'rediss' : 'redis'}://${loginOf(username, password)}${address}${db ? `/${db}` : ''}`;
}

// A URL cannot say that only the sentinels, or only the servers, speak TLS.
function canBeUrl({ tls, enableTLSForSentinelMode, sentinelTLS, name }: RedisOptions): boolean {
  return Boolean(tls && enableTLSForSentinelMode) === Boolean(sentinelTLS) && Boolean(name);
}

function sentinelUrlOf(options: RedisOptions): string {
  const { name, sentinelTLS, username, password, db, sentinelUsername, sentinelPassword } = options;
  const addresses = sentinelsIn(options).map(nameOf);
  const query = new URLSearchParams({
    ...(db && { db: String(db) }),
    ...(sentinelUsername && { sentinelUsername: 'USER' }),
    ...(sentinelPassword && { sentinelPassword: 'PASSWORD' }),
  });
  const scheme = sentinelTLS ? 'rediss+sentinel' : 'redis+sentinel';
  const path = `${encodeURIComponent(name ?? '')}${query.size > 0 ? `?${query.toString()}` : ''}`;
  return `${scheme}://${loginOf(username, password)}${addresses.join(',')}/${path}`;
}

export function placeholderClusterUrlOf({ seeds, clientFor, nodeTimeout, usesTls }: ClusterSettings): string {
  const [first] = seeds;
  // It is not connected: it only has the settings that apply to all nodes.
  const { username, password } = first ? clientFor(first).options : {};
  const scheme = usesTls ? 'rediss+cluster' : 'redis+cluster';
  const addresses = seeds.map(({ host, port }) => nameOf({ host, port })).join(',');
  const query = nodeTimeout === undefined ? '' : `?clusterNodeTimeout=${nodeTimeout}`;
  return `${scheme}://${loginOf(username, password)}${addresses}${query}`;
}

function loginOf(username: string | null | undefined, password: string | null | undefined): string {
  const user = username && username !== 'default' ? 'USER' : '';
  return password ? `${user}:PASSWORD@` : '';
}

export function doctorCommand(urls: readonly string[], { keyPrefix, restartGuard }: Settings): string {
  const masters = urls.flatMap((url) => ['--master', quoted(url)]);
  const prefix = keyPrefix === 'lock:' ? [] : ['--prefix', quoted(keyPrefix)];
  const guard = urls.length >= 3 && !restartGuard ? ['--no-restart-guard'] : [];
  return ['npx nestjs-redlock doctor', ...masters, ...prefix, ...guard].join(' ');
}

function quoted(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
