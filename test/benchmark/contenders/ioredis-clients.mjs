import { Redis } from 'ioredis';

/** Connections of ioredis with its defaults. The loss of a server is expected here, so errors are ignored. */
export async function ioredisClients(urls) {
  const clients = urls.map((url) => new Redis(url));
  for (const client of clients) client.on('error', () => {});
  await Promise.all(clients.map((client) => client.ping()));
  return clients;
}

export const disconnectAll = (clients) => clients.forEach((client) => client.disconnect());
