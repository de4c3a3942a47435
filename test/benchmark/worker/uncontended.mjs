import { Redis } from 'ioredis';
import { sharedNow, sleep } from '../measure/figures.mjs';

/** Milliseconds of each attempt that does not wait, on a key that is held. */
export async function refuse(contender, { key, ttl, count }) {
  const times = [];
  for (let i = 0; i < count; i++) {
    const start = sharedNow();
    const release = await contender.tryAcquire(key, ttl);
    times.push(sharedNow() - start);
    if (release) throw new Error('a key that is held was given out again');
  }
  return times;
}

/**
 * Milliseconds until a quorum of the masters has run a script that sets one key, with a pause of `pause` milliseconds
 * between two runs. This is the least that a lock in one round trip can take.
 */
export async function setByScript({ urls, count, pause }) {
  const clients = urls.map((url) => new Redis(url));
  const script = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";
  const [sha] = await Promise.all(clients.map((client) => client.script('LOAD', script)));
  const key = `round-trip:${process.pid}`;
  const times = [];
  for (let i = 0; i < count; i++) {
    await sleep(pause);
    const start = sharedNow();
    const answers = clients.map((client) => client.evalsha(sha, 1, key, 'token', 1_000));
    await quorumOf(answers);
    times.push(sharedNow() - start);
    await Promise.all(answers);
  }
  await Promise.all(clients.map((client) => client.del(key)));
  for (const client of clients) client.disconnect();
  return times;
}

/** Resolves when more than half of the answers have arrived. */
function quorumOf(answers) {
  let missing = Math.floor(answers.length / 2) + 1;
  return new Promise((resolve, reject) => {
    for (const answer of answers) answer.then(() => --missing === 0 && resolve(), reject);
  });
}

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
