import type { Settings } from '../settings/settings.js';
import type { ClusterClient } from './cluster/cluster-client.js';
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

export function placeholderClusterUrlOf({ nodes, options }: ClusterClient): string {
  const { tls, username, password } = options;
  const scheme = tls ? 'rediss+cluster' : 'redis+cluster';
  return `${scheme}://${loginOf(username, password)}${nodes.map(nameOf).join(',')}`;
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
