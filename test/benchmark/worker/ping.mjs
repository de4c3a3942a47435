import { Redis } from 'ioredis';
import { sharedNow, sleep } from '../measure/figures.mjs';

/** Milliseconds of a PING to several servers at once, with a pause of `pause` milliseconds between two PINGs. */
export async function ping({ urls, count, pause }) {
  const clients = urls.map((url) => new Redis(url));
  const times = [];
  await Promise.all(clients.map((client) => client.ping()));
  for (let i = 0; i < count; i++) {
    if (pause) await sleep(pause);
    const start = sharedNow();
    await Promise.all(clients.map((client) => client.ping()));
    times.push(sharedNow() - start);
  }
  for (const client of clients) client.disconnect();
  return times;
}
