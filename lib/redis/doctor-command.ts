import type { Settings } from '../core/settings/settings.js';
import type { RedisClientOptions } from './redis-client.interface.js';

/** Strings that a shell takes as they are. */
const PLAIN = /^[\w.:/@%+=-]+$/;

/** The URL of a server for the command line, with placeholders in place of credentials. */
export function placeholderUrlOf(options: RedisClientOptions): string {
  const { host = 'localhost', port = 6379, path, sentinels, tls, username, password, db } = options;
  if (path) return path;
  const user = username && username !== 'default' ? 'USER' : '';
  const login = password ? `${user}:PASSWORD@` : '';
  const address = sentinels ? 'PRIMARY:6379' : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `${tls ? 'rediss' : 'redis'}://${login}${address}${db ? `/${db}` : ''}`;
}

/** The command that examines these masters, for the operator to type. */
export function doctorCommand(urls: readonly string[], { keyPrefix, restartGuard }: Settings): string {
  const masters = urls.flatMap((url) => ['--master', quoted(url)]);
  const prefix = keyPrefix === 'lock:' ? [] : ['--prefix', quoted(keyPrefix)];
  const guard = urls.length >= 3 && !restartGuard ? ['--no-restart-guard'] : [];
  return ['npx nestjs-redlock doctor', ...masters, ...prefix, ...guard].join(' ');
}

function quoted(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
