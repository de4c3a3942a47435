import { Redis } from 'ioredis';

/** Uses a connection of its own. */
export async function withClient<T>(
  port: number,
  use: (client: Redis) => Promise<T>,
  options: { readonly username?: string; readonly password?: string; readonly db?: number } = {},
): Promise<T> {
  const client = new Redis(port, '127.0.0.1', {
    ...{ maxRetriesPerRequest: 0, retryStrategy: () => null },
    // Otherwise a refused connection keeps the process of the test alive for two seconds.
    ...{ disconnectTimeout: 50, ...options },
  });
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

/** Sends one command over its own connection. */
export function command(port: number, name: string, ...args: (string | number)[]): Promise<unknown> {
  return withClient(port, (client) => client.call(name, ...args));
}
