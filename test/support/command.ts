import { Redis } from 'ioredis';

/** Sends one command over its own connection. */
export async function command(port: number, name: string, ...args: (string | number)[]): Promise<unknown> {
  const client = new Redis(port, '127.0.0.1', {
    ...{ maxRetriesPerRequest: 0, retryStrategy: () => null },
    // Otherwise a refused connection keeps the process of the test alive for two seconds.
    disconnectTimeout: 50,
  });
  try {
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}
